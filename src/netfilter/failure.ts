// Reads what a tool said when it failed: may it be tried again, and what should a person do? Pure.
// Texts are those of iptables 1.4 to 1.8, both backends, under LC_ALL=C.

export type FailureKind =
  /** Somebody else was at the table; the next try may do. */
  | "transient"
  /** The kernel or the tool lacks something: no try will do. */
  | "unsupported"
  | "unknown";

/** What a failed tool told. `advice` is a sentence for a person, "" where we know none. */
export type ToolFailure = {
  readonly kind: FailureKind;
  readonly said: string;
  readonly advice: string;
};

type Pattern = { text: RegExp; kind: FailureKind; advice: string };

const moduleAdvice =
  "the kernel lacks a match or target: modprobe xt_owner xt_REDIRECT xt_multiport xt_comment";

const patterns: readonly Pattern[] = [
  {
    text: /holding the xtables lock|resource temporarily unavailable|device or resource busy|interrupted system call/i,
    kind: "transient",
    advice: "another program is changing the rules; try again",
  },
  {
    text: /can't open lock file|unable to open lock file/i,
    kind: "unsupported",
    advice: "the lock file cannot be opened: check that /run is writable",
  },
  {
    text: /could not fetch rule set generation id|protocol not supported/i,
    kind: "unsupported",
    advice: "the kernel has no nf_tables: load nf_tables, or set iptables-mode to legacy",
  },
  {
    text: /permission denied|operation not permitted/i,
    kind: "unsupported",
    advice: "root with CAP_NET_ADMIN is needed; with SELinux, look for a denial",
  },
  {
    text: /extension (\S+) revision \d+ not supported/i,
    kind: "unsupported",
    advice:
      "the kernel lacks this match or target: modprobe xt_<name>, or reboot after a kernel update",
  },
  {
    text: /couldn't load (?:match|target) .?(\w+)/i,
    kind: "unsupported",
    advice: "the node's iptables has no extension <name>: install all of iptables",
  },
  {
    text: /can't initialize ip6?tables table|unable to initialize table|table does not exist|do you need to insmod/i,
    kind: "unsupported",
    advice:
      "the kernel has no nat table for this backend: modprobe iptable_nat (ip6table_nat), or use nft",
  },
  {
    text: /RULE_(?:APPEND|INSERT) failed \(operation not supported/i,
    kind: "unsupported",
    advice: moduleAdvice,
  },
  {
    // The kernel does not say what is not there: a module, or a chain that somebody has just deleted.
    text: /RULE_(?:APPEND|INSERT) failed \(no such file/i,
    kind: "unknown",
    advice: moduleAdvice,
  },
];

/** Reads a tool's messages. `status` 126 and 127 are the shell's: the program could not be run. */
export function readFailure(status: number, stderr: string): ToolFailure {
  const said = firstLine(stderr) || `exit status ${status}`;
  if (status === 126 || status === 127) {
    return { kind: "unsupported", said, advice: "the program cannot be run: install iptables" };
  }
  const known = patterns.find(({ text }) => text.test(stderr));
  const name = known?.text.exec(stderr)?.[1] ?? "";
  const advice = known?.advice.replace("<name>", name) ?? "";
  return { kind: known?.kind ?? "unknown", said, advice };
}

/** The chain that the tool names in its message; "" where it names none. */
export function failedChain(stderr: string): string {
  return /\b[Cc]hain '?([A-Z][\w-]*)/.exec(stderr)?.[1] ?? "";
}

// Warnings come first and are not why it failed; nor do modprobe's complaint, or the line that nft puts ahead of the
// kernel's answer: `iptables-nft-restore v1.8.9 (nf_tables):`.
function firstLine(stderr: string): string {
  const lines = stderr.split("\n").map((line) => line.trim());
  return lines.find((line) => !/^(#.*|modprobe: .*|\S+ v\S+ \(\w+\):)?$/.test(line)) ?? "";
}
