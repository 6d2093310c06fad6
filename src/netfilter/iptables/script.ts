// What runs in the netns. Constant but for which families are looked at: what differs from call to call are its arguments,
// whose order layout.ts knows. First it hides files from what is run here: nothing is said before they are hidden. Then it does
// one job after the other. Last, where nft is to be asked, nft and its listings. Lines go to stdout as soon as something is
// known: "job restore-status", at the end of the job "job restore-status save-status" or "job absent", and "nft status" after
// each listing.
// - The save of legacy is called without -t: with it, it makes the table. The file is /proc/net/ip_tables_names: an
//   empty one means that legacy has no table, and spares the call.
// - The last job runs in the shell itself: a process less. A here-document, not a pipe: the same, and the text is data.
// - nft comes after it, in the same streams, behind a NUL: some shells know no descriptors beyond 9.
// - Of a netns that another user namespace owns legacy takes no owner match, and leaves an empty table, which nothing takes
//   away: it is not asked. Told by whose the netns' settings are, where root's own are root's ($lo).

import type { Family } from "../table.ts";
import { foreignNetns } from "./failure.ts";
import { wordsPerJob } from "./layout.ts";
import { presenceScript } from "./presence.ts";

/** The shell's text, for a batch that looks how far these families are there. */
export function scriptOf(looked: readonly Family[]): string {
  return `${hiding}${presenceScript(looked)}${working}`;
}

const hiding = `
for file in $2; do "$1" --bind /dev/null "$file" || exit 1; done
shift 2
`;

const working = `
lo=/proc/sys/net/ipv4/conf/lo/forwarding
isforeign() {
  case $1 in
    *-owner*) [ -O /proc/sys/kernel/ostype ] && [ -e "$lo" ] && { [ -O "$lo" ]; [ $? -eq 1 ]; } ;;
    *) return 1 ;;
  esac
}
job() {
  n=$1 r=0 s=0
  if [ -n "$3" ]; then
    if [ -z "$5" ] && isforeign "$8"; then
      echo "${foreignNetns}" >&"$2"
      r=4
    else
      "$3" --noflush \${7:+--wait "$7"} <<EOF >&"$2" 2>&1 || r=$?
$8
EOF
    fi
    echo "$n $r"
  fi
  "$4" \${5:+-t "$5"} >&"$(($2 + 1))" 2>&"$2" || s=$?
  echo "$n $r $s"
}
n=0
while [ $# -ge ${wordsPerJob} ]; do
  last=$1
  if [ "$5$possible" = possible ]; then echo "$n absent"
  elif [ -n "$5" ] && [ "$5" != possible ] && ! read -r found 2>/dev/null <"$5"; then echo "$n 0 0"
  elif [ $# -ge ${2 * wordsPerJob} ]; then job "$n" "$@" &
  else job "$n" "$@"
  fi
  shift ${wordsPerJob}; n=$((n + 1))
done
while [ $# -gt 1 ]; do
  s=0
  {
    printf '\\0'; printf '\\0' >&2
    "$1" -j "$2" || s=$?
  } >&"$((last + 1))" 2>&"$last"
  echo "nft $s"
  nft=$1; shift 2; set -- "$nft" "$@"
done
wait
`;
