// The tables of one family as data: what we want of them (Ruleset) and what is there (Table).
// Chains as values: a mesh's profile makes the first, save.ts the second, compare and plan look at both.

/** IP version. */
export type Family = "ipv4" | "ipv6";
export const families: readonly Family[] = ["ipv4", "ipv6"];

/** iptables flavour: which kernel interface the rules go through. */
export type Backend = "nft" | "legacy";
export const backends: readonly Backend[] = ["nft", "legacy"];

/** iptables' tables that rules of ours may stand in, in the order in which a packet comes to them: so they are written. */
export type TableName = "raw" | "mangle" | "nat";
export const tableNames: readonly TableName[] = ["raw", "mangle", "nat"];

/** Where packets come to by themselves. */
export type BuiltinChain = "PREROUTING" | "INPUT" | "FORWARD" | "OUTPUT" | "POSTROUTING";

/** The kernel's own chains, which alone have a policy. Any other chain of such a name is a plain one of somebody's. */
export const builtinChains: Readonly<Record<TableName, readonly BuiltinChain[]>> = {
  raw: ["PREROUTING", "OUTPUT"],
  mangle: ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"],
  nat: ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"],
};

/** A rule in iptables-save's own spelling: `-A CHAIN [matches] -j TARGET [options]`. */
export type RuleText = string;

/** A chain of ours. Jumps lead into it from builtin chains (Placed), or from other chains of ours, or none does. */
export type OwnChain = { readonly name: string; readonly rules: readonly RuleText[] };

/** A rule of ours in a builtin chain: a jump into an own chain, or one that acts by itself. */
export type Placed = { readonly hook: BuiltinChain; readonly rule: RuleText };

/** What one table should hold of ours. Rules of one builtin chain stand in this order, ahead of what takes their traffic. */
export type OwnTable = {
  readonly name: TableName;
  readonly chains: readonly OwnChain[];
  readonly placed: readonly Placed[];
  /** Jumps into these chains as other tools of the mesh spell them: they go where ours go. */
  readonly aliases?: readonly RuleText[];
  /** What earlier rules of ours in this netns had here, and these have not: it goes. */
  readonly stale?: OwnNames;
};

/** What of a table is ours, whatever it shows: names of chains, and rules in builtin chains as they are spelt. */
export type OwnNames = {
  readonly name: TableName;
  readonly chains: readonly string[];
  readonly placed: readonly RuleText[];
};

/** The packets that rules of ours wait for: a foreign rule takes our traffic where it matches some of these. */
export type Traffic = {
  /** Protocols by name, as rules name them after -p. */
  readonly protocols: readonly Protocol[];
  /** Also what stays in the pod, over lo. */
  readonly loopback: boolean;
};

export type Protocol = "tcp" | "udp";
export const protocols: readonly Protocol[] = ["tcp", "udp"];

/** The protocol that a rule means by a name, or by a number where the node's /etc/protocols has no name for it. */
export function protocolOf(word: unknown): Protocol | undefined {
  return protocolWords.get(String(word));
}

const protocolWords: ReadonlyMap<string, Protocol> = new Map([
  ["tcp", "tcp"],
  ["6", "tcp"],
  ["udp", "udp"],
  ["17", "udp"],
]);

/** The desired state of one family, as far as it is ours. */
export type Ruleset = {
  readonly family: Family;
  readonly tables: readonly OwnTable[];
  readonly traffic: Traffic;
};

/** The state of one family's table as one backend shows it. */
export type Table = {
  /** Rules by chain, in order. A chain that is not there has no key; a table that does not exist has none at all. */
  readonly chains: ReadonlyMap<string, readonly RuleText[]>;
  /** The tool's own line when it does not show all of the table (nft's own rules in it): `chains` may lack any of it. */
  readonly unverifiable?: string;
};

/** A table that holds nothing: what a fresh netns has. */
export const emptyTable: Table = { chains: new Map() };

/** The rules of a chain; a chain that is not there has none. */
export function rulesOf(table: Table, chain: string): readonly RuleText[] {
  return table.chains.get(chain) ?? [];
}
