// What a failed tool said: again, or not, and what to do.
import { expect, test } from "vitest";
import { type FailureKind, readFailure } from "../../../src/netfilter/iptables/failure.ts";

const advice = {
  memory:
    "memory or descriptors are short for the kernel or in the runtime's cgroup; try again, and see memory.max",
  noFamily:
    "the kernel's nf_tables lacks this family: modprobe nf_tables (nf_tables_ipv4, nf_tables_ipv6 before Linux 4.17), or set iptables-mode to legacy",
  noNftNat:
    "the kernel's nf_tables lacks nat: modprobe nft_chain_nat (nft_chain_nat_ipv4, nft_chain_nat_ipv6 before Linux 5.1), or set iptables-mode to legacy",
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
    "root",
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
  ...["CHAIN_ADD", "CHAIN_USER_ADD", "CHAIN_UPDATE"].flatMap((what): (typeof said)[number][] => [
    [`${nft} ${what} failed (No such file or directory): chain OUTPUT`, "unsupported", "noNftNat"],
    [`line 2: ${what} failed (Operation not supported): chain OUTPUT`, "unsupported", "noNftNat"],
  ]),
  ...["No such file or directory", "Operation not supported", "Invalid argument"].map(
    (why): (typeof said)[number] => [
      `${nft} TABLE_ADD failed (${why}): table nat`,
      "unsupported",
      "noFamily",
    ],
  ),
  ...["TABLE_ADD", "CHAIN_ADD", "CHAIN_USER_ADD", "CHAIN_USER_FLUSH", "RULE_APPEND"].flatMap(
    (what): (typeof said)[number][] => [
      [`line 2: ${what} failed (Cannot allocate memory): chain A`, "transient", "memory"],
      [`line 2: ${what} failed (No buffer space available): chain A`, "transient", "memory"],
      [`line 2: ${what} failed (Device or resource busy): chain A`, "transient", "lock"],
      [`line 2: ${what} failed (Resource temporarily unavailable): chain A`, "transient", "lock"],
      [`line 2: ${what} failed (Interrupted system call): chain A`, "transient", "lock"],
    ],
  ),
  ["iptables-restore: line 9 failed: Memory allocation problem.", "transient", "memory"],
  ["iptables-restore: line 9 failed: No buffer space available.", "transient", "memory"],
  ["Fatal: can't open lock file /run/xtables.lock: Too many open files", "transient", "memory"],
  ["iptables-restore: line 9 failed: Operation not supported.", "unsupported", "module"],
  ["iptables-restore: line 9 failed: No chain/target/match by that name.", "unsupported", "module"],
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

const ownerText = `*nat
-N A
-A A -m owner --uid-owner 2102 -j RETURN
-A A -j REDIRECT --to-ports 1
COMMIT
`;
const invalid = (line: number) =>
  `line ${line}: RULE_APPEND failed (Invalid argument): rule in chain A`;

test("readFailure() knows the owner match that another user namespace's netns refuses", () => {
  const userns =
    "the kernel refuses a rule that it knows: most likely the netns belongs to another user namespace (hostUsers: false, a rootless runtime), where xt_owner cannot be used";
  const found = [3, 4, 9].map((line) => readFailure(4, invalid(line), ownerText));
  expect(found).toEqual([
    { kind: "unsupported", said: invalid(3), advice: userns },
    { kind: "unknown", said: invalid(4), advice: "" },
    { kind: "unknown", said: invalid(9), advice: "" },
  ]);
});

test("readFailure() takes the rights that the tool was run without for the reason", () => {
  const stderr = `${legacy}iptables-restore: unable to initialize table 'nat'\nsluice: run without CAP_NET_ADMIN and CAP_NET_RAW`;
  expect(readFailure(2, stderr)).toEqual({
    kind: "unsupported",
    said: `${legacy}iptables-restore: unable to initialize table 'nat'`,
    advice:
      "the plugin runs without CAP_NET_ADMIN and CAP_NET_RAW, which iptables needs: give it to the runtime",
  });
});

test("readFailure() does not take modprobe's complaint for the tool's", () => {
  const stderr = `modprobe: ERROR: could not insert 'ip_tables': Operation not permitted\n${legacy}iptables-restore: unable to initialize table 'nat'`;
  expect(readFailure(2, stderr).advice).toBe(advice.noNat);
});

test.each([
  [126, "sluice: 8: /sbin/iptables-restore: Cannot allocate memory"],
  [
    127,
    "iptables-restore: error while loading shared libraries: libxtables.so.12: Cannot allocate memory",
  ],
])("readFailure() takes a program that lacks memory to begin for passing: %i", (status, said) => {
  expect(readFailure(status, said)).toEqual({ kind: "transient", said, advice: advice.memory });
});
