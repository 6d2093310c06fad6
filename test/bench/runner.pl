# Starts processes and says exactly what they cost: wall time, CPU of the whole tree (the kernel's own sum, from wait4),
# peak RSS. Perl because each Debian has it: Node cannot ask wait4, and its spawn is no small part of what is measured.
# stdin: one process a line, fields between tabs: stdin file, stdout file, stderr file, count of arguments, arguments,
# then NAME=value for all of the environment. All start at once. stdout: wall of all in us, then a line for each:
# exit status (256 and more: by a signal), wall us, user + system us, peak RSS in KiB.
use strict;
use warnings;
use POSIX ();

my ($WAIT4, $CLOCK) = @{ { x86_64 => [61, 228], aarch64 => [260, 113] }->{ (POSIX::uname())[4] } // die "unknown CPU\n" };

sub now {
    my $time = pack "qq", 0, 0;
    syscall($CLOCK, 1, $time) == 0 or die "clock_gettime: $!\n";
    my ($s, $ns) = unpack "qq", $time;
    return $s * 1e6 + $ns / 1e3;
}

sub start {
    my ($in, $out, $err, $count, @rest) = split /\t/, shift, -1;
    my @argv = splice @rest, 0, $count;
    my $pid = fork // die "fork: $!\n";
    return $pid if $pid;
    %ENV = map { split /=/, $_, 2 } @rest;
    open STDIN, "<", $in or die "$in: $!\n";
    open STDOUT, ">>", $out or die "$out: $!\n";
    open STDERR, ">>", $err or POSIX::_exit(126);
    { no warnings; exec { $argv[0] } @argv; }
    POSIX::_exit(127);
}

chomp(my @processes = <STDIN>);
my (%began, %order, @result);
my $start = now();
for my $i (0 .. $#processes) {
    my $at = now();
    my $pid = start($processes[$i]);
    ($began{$pid}, $order{$pid}) = ($at, $i);
}
while (%order) {
    my ($status, $usage) = (pack("i", 0), "\0" x 144);
    my $pid = syscall($WAIT4, -1, $status, 0, $usage);
    my $end = now();
    die "wait4: $!\n" if $pid < 0;
    my ($user_s, $user_us, $system_s, $system_us, $rss) = unpack "q5", $usage;
    my $code = unpack "i", $status;
    my $exit = $code & 127 ? 256 + ($code & 127) : $code >> 8;
    my $cpu = ($user_s + $system_s) * 1e6 + $user_us + $system_us;
    $result[ delete $order{$pid} ] = sprintf "%d %d %d %d", $exit, $end - $began{$pid}, $cpu, $rss;
}
print join("\n", int(now() - $start), @result), "\n";
