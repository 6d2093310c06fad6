// Reads what a tool said when it failed: may it be tried again, and what should a person do? Pure.
// Texts are those of iptables 1.4 to 1.8, both backends, under LC_ALL=C.
import { builtinChains } from "../table.ts";

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

/** How messages say which rights the tools had not; client.ts adds them to what the tools said. */
export const lackedWords = "sluice: run without";

type Pattern = {
  readonly text: RegExp;
  /** What the refused line of the text must have, where the messages alone do not say enough. */
  readonly rule?: RegExp;
  readonly kind: FailureKind;
  readonly advice: string;
};

const moduleAdvice =
  "the kernel lacks a match or target: modprobe xt_owner xt_REDIRECT xt_multiport xt_comment";

const rightsAdvice = "root with CAP_NET_ADMIN is needed; with SELinux, look for a denial";

// The first that fits counts: what is of the moment, then rights, without which nothing else is known, then what is missing.
/** What the client says of a netns in which it does not ask legacy. */
export const foreignNetns = "the netns belongs to another user namespace";

/** Whichever backend said it, the other one would refuse as well. */
export const foreignNetnsAdvice =
  "the kernel refuses a rule that it knows: most likely the netns belongs to another user namespace (hostUsers: false, a rootless runtime), where xt_owner cannot be used";

const patterns: readonly Pattern[] = [
  {
    text: /holding the xtables lock|resource temporarily unavailable|device or resource busy|interrupted system call/i,
    kind: "transient",
    advice: "another program is changing the rules; try again",
  },
  {
    text: /cannot allocate memory|memory allocation problem|no buffer space available|too many open files/i,
    kind: "transient",
    advice:
      "memory or descriptors are short for the kernel or in the runtime's cgroup; try again, and see memory.max",
  },
  {
    text: /can't open lock file|unable to open lock file/i,
    kind: "unsupported",
    advice: "the lock file cannot be opened: check that /run is writable",
  },
  {
    text: new RegExp(`^${lackedWords} (CAP_.*)$`, "m"),
    kind: "unsupported",
    advice: "the plugin runs without <name>, which iptables needs: give it to the runtime",
  },
  {
    text: /you must be root|permission denied|operation not permitted/i,
    kind: "unsupported",
    advice: rightsAdvice,
  },
  {
    text: /TABLE_ADD failed \((?:no such file|operation not supported|protocol not supported|address family not supported|invalid argument)/i,
    kind: "unsupported",
    advice:
      "the kernel's nf_tables lacks this family: modprobe nf_tables (nf_tables_ipv4, nf_tables_ipv6 before Linux 4.17), or set iptables-mode to legacy",
  },
  {
    text: /CHAIN_(?:USER_)?(?:ADD|UPDATE) failed \((?:no such file|operation not supported|protocol not supported)/i,
    kind: "unsupported",
    advice:
      "the kernel's nf_tables lacks nat: modprobe nft_chain_nat (nft_chain_nat_ipv4, nft_chain_nat_ipv6 before Linux 5.1), or set iptables-mode to legacy",
  },
  {
    text: /could not fetch rule set generation id|protocol not supported/i,
    kind: "unsupported",
    advice: "the kernel has no nf_tables: load nf_tables, or set iptables-mode to legacy",
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
    // legacy's words for it come with the line of COMMIT; other lines are another matter (see converge/progress.ts).
    text: /RULE_(?:APPEND|INSERT|REPLACE) failed \(operation not supported|line \d+ failed: (?:operation not supported|no chain\/target\/match by that name)/i,
    kind: "unsupported",
    advice: moduleAdvice,
  },
  {
    text: /RULE_(?:APPEND|INSERT|REPLACE) failed \(invalid argument/i,
    rule: / -m owner /,
    kind: "unsupported",
    advice: foreignNetnsAdvice,
  },
  { text: new RegExp(foreignNetns), kind: "unsupported", advice: foreignNetnsAdvice },
  {
    // The kernel does not say what is not there: a module, or a chain that somebody has just deleted.
    text: /RULE_(?:APPEND|INSERT|REPLACE) failed \(no such file/i,
    kind: "unknown",
    advice: moduleAdvice,
  },
];

/**
 * Reads a tool's messages. `status` 126 and 127 are the shell's: the program could not be run. `restore` is the text that
 * it was given, of which it may name a line.
 */
export function readFailure(status: number, stderr: string, restore = ""): ToolFailure {
  const said = firstLine(stderr) || `exit status ${status}`;
  // What modprobe may not do says nothing about the tool that called it.
  const words = stderr.replaceAll(/^modprobe: .*$/gm, "");
  const refused = refusedLine(words, restore);
  const known = patterns.find(
    ({ text, rule }) => text.test(words) && (rule?.test(refused) ?? true),
  );
  if ((status === 126 || status === 127) && known?.kind !== "transient") {
    return { kind: "unsupported", said, advice: "the program cannot be run: install iptables" };
  }
  const name = known?.text.exec(words)?.[1] ?? "";
  const advice = known?.advice.replace("<name>", name) ?? "";
  return { kind: known?.kind ?? "unknown", said, advice };
}

function refusedLine(words: string, restore: string): string {
  const line = /\bline (\d+): RULE_/.exec(words)?.[1] ?? "0";
  return restore.split("\n")[Number(line) - 1] ?? "";
}

/** The chain that the tool names in its message; "" where it names none of these, nor one of the kernel's own. */
export function failedChain(stderr: string, own: readonly string[]): string {
  const chain = /\b[Cc]hain '?([A-Z][A-Z_]{0,30})\b/.exec(stderr)?.[1] ?? "";
  const isKnown = own.includes(chain) || builtinChains.mangle.some((name) => name === chain);
  return isKnown ? chain : "";
}

// Warnings come first and are not why it failed; nor do modprobe's complaint, or the line that nft puts ahead of the
// kernel's answer: `iptables-nft-restore v1.8.9 (nf_tables):`.
function firstLine(stderr: string): string {
  const lines = stderr.split("\n").map((line) => line.trim());
  return lines.find((line) => !/^(#.*|modprobe: .*|\S+ v\S+ \(\w+\):)?$/.test(line)) ?? "";
}
