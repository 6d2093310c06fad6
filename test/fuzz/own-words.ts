// What a line may consist of that is handed to iptables-restore: our own words, integers and canonical subnets. Whatever a
// pod wrote into its tables or its annotations, no other word ever gets there.

const builtins = "(?:PREROUTING|INPUT|OUTPUT|POSTROUTING)";
const own = "PROXY_INIT_(?:REDIRECT|OUTPUT)";

const match = [
  "-p tcp",
  "-m tcp --dport \\d+",
  "-m multiport --dports [\\d:,]+",
  "-m owner --[ug]id-owner \\d+",
  '-m comment --comment "sluice/[a-z-]+"',
  "-o lo",
  "-s [0-9a-f:.]+/\\d+",
].join("|");

const target = `-[jg] (?:RETURN|REDIRECT --to-ports \\d+|${own})`;

/** A rule of ours, or a jump of ours, as iptables-save prints it. */
export const ownWords = new RegExp(`^-A (?:${builtins}|${own})(?: (?:${match}))* ${target}$`);
const condition = "(?: !)? -[sdiop] [A-Za-z0-9][A-Za-z0-9_.:/+-]*";
const known = [
  "sport|dport|sports|dports|ports|uid-owner|gid-owner|mark|src-type|dst-type|ctstate|state",
  "tcp|udp|multiport|owner|mark|addrtype|conntrack|state",
] as const;
const option = `(?: !)? --(?:${known[0]}) [A-Za-z0-9][A-Za-z0-9,:/-]*`;
const comment = ` -m comment --comment (?:[A-Za-z0-9_-]+|"(?:[A-Za-z0-9][A-Za-z0-9_/:. ()+,=-]*)?")`;

/** A jump of somebody's into our chains, as it is taken out: with no option but those that say which traffic. */
const deletion = `-D ${builtins}(?:${condition}|${comment}| -m (?:${known[1]})(?:${option})*)* -[jg] ${own}`;

/** A line of a restore text of ours: rules appended, inserted or deleted, chains made, emptied or deleted. */
export const ownRestoreLine = new RegExp(
  [
    "^\\*nat$",
    "^COMMIT$",
    "^$",
    `^-[NX] ${own}$`,
    `^:${own} - \\[0:0\\]$`,
    `^-[AI] (?:${builtins}|${own})(?: (?:${match}))* ${target}$`,
    `^${deletion}$`,
  ].join("|"),
);
