// What a failed tool said: again, or not, and what to do.
import { expect, test } from "vitest";
import { type FailureKind, readFailure } from "../../src/netfilter/failure.ts";

const advice = {
  lock: "another program is changing the rules; try again",
  lockFile: "the lock file cannot be opened: check that /run is writable",
  noNft: "the kernel has no nf_tables: load nf_tables, or set iptables-mode to legacy",
  root: "root with CAP_NET_ADMIN is needed; with SELinux, look for a denial",
  owner:
    "the kernel lacks this match or target: modprobe xt_owner, or reboot after a kernel update",
  extension: "the node's iptables has no extension owner: install all of iptables",
  noNat:
    "the kernel has no nat table for this backend: modprobe iptable_nat (ip6table_nat), or use nft",
  module:
    "the kernel lacks a match or target: modprobe xt_owner xt_REDIRECT xt_multiport xt_comment",
  none: "",
};

const nft = "iptables-nft-restore v1.8.9 (nf_tables): ";
const legacy = "iptables-restore v1.8.9 (legacy): ";
const said: [text: string, kind: FailureKind, advised: keyof typeof advice][] = [
  [
    "Another app is currently holding the xtables lock; still 1s 0us time ahead to have a chance to grab the lock...",
    "transient",
    "lock",
  ],
  ["iptables-restore: Resource temporarily unavailable", "transient", "lock"],
  ["line 3: CHAIN_DEL failed (Device or resource busy): chain A", "transient", "lock"],
  ["iptables: Interrupted system call", "transient", "lock"],
  [
    "Fatal: can't open lock file /run/xtables.lock: Read-only file system",
    "unsupported",
    "lockFile",
  ],
  [`${nft}Could not fetch rule set generation id: Invalid argument`, "unsupported", "noNft"],
  ["Failed to initialize nft: Protocol not supported", "unsupported", "noNft"],
  [
    `${nft}Could not fetch rule set generation id: Permission denied (you must be root)`,
    "unsupported",
    "noNft",
  ],
  ["iptables-restore: Permission denied", "unsupported", "root"],
  ["getsockopt failed strangely: Operation not permitted", "unsupported", "root"],
  [
    "Warning: Extension owner revision 0 not supported, missing kernel module?",
    "unsupported",
    "owner",
  ],
  [`${legacy}Couldn't load match \`owner':No such file or directory`, "unsupported", "extension"],
  [`${legacy}iptables-restore: unable to initialize table 'nat'`, "unsupported", "noNat"],
  [
    `${legacy}can't initialize iptables table \`nat': Table does not exist (do you need to insmod?)`,
    "unsupported",
    "noNat",
  ],
  ["line 4: RULE_APPEND failed (No such file or directory): rule in chain A", "unknown", "module"],
  [
    "line 4: RULE_APPEND failed (Operation not supported): rule in chain A",
    "unsupported",
    "module",
  ],
  ["line 4: RULE_APPEND failed (Invalid argument): rule in chain A", "unknown", "none"],
  ["iptables-restore: line 2 failed", "unknown", "none"],
  ["iptables-nft-restore: line 2 failed: Chain already exists.", "unknown", "none"],
];

test.each(said)("readFailure() of %j is %s, and advises: %s", (text, kind, advised) => {
  expect(readFailure(1, text)).toEqual({ kind, said: text, advice: advice[advised] });
});

const texts: [when: string, stderr: string, told: string][] = [
  ["there is nothing", "", "exit status 4"],
  ["there are blank lines", "\n \n", "exit status 4"],
  ["there are only warnings", "# Warning: iptables-legacy tables present\n", "exit status 4"],
  ["a warning comes first", "# Warning: x\n  what it was \nmore\n", "what it was"],
  [
    "nft puts its name ahead",
    `${nft}\nline 3: CHAIN_DEL failed (x): chain A\n`,
    "line 3: CHAIN_DEL failed (x): chain A",
  ],
  [
    "the name is in the same line",
    `${nft}Chain 'A' does not exist\nmore`,
    `${nft}Chain 'A' does not exist`,
  ],
];

test.each(texts)("readFailure() tells the line that says why when %s", (_, stderr, told) => {
  expect(readFailure(4, stderr).said).toBe(told);
});

const shells: [status: number, stderr: string, told: string][] = [
  [
    126,
    "sh: 1: /sbin/iptables-restore: Permission denied",
    "sh: 1: /sbin/iptables-restore: Permission denied",
  ],
  [127, "sh: 1: /sbin/iptables-restore: not found", "sh: 1: /sbin/iptables-restore: not found"],
  [127, "", "exit status 127"],
];

test.each(shells)(
  "readFailure() knows that the program did not run when status is %i: %j",
  (status, stderr, told) => {
    const unsupported = { kind: "unsupported", said: told };
    const what = "the program cannot be run: install iptables";
    expect(readFailure(status, stderr)).toEqual({ ...unsupported, advice: what });
  },
);
