// The tables of one family as data: what we want of nat (Ruleset) and what is there (Table).
// Chains as values: a mesh's profile makes the first, save.ts the second, compare and plan look at both.

/** IP version. */
export type Family = "ipv4" | "ipv6";
export const families: readonly Family[] = ["ipv4", "ipv6"];

/** iptables flavour: which kernel interface the rules go through. */
export type Backend = "nft" | "legacy";
export const backends: readonly Backend[] = ["nft", "legacy"];

/** The backend that is not this one. */
export function otherThan(backend: Backend): Backend {
  return backends.find((other) => other !== backend) ?? backend;
}

/** The tables that are looked at: nat is where our rules are, the others can take the traffic away before it. */
export type TableName = "nat" | "raw" | "mangle";

/** A rule in iptables-save's own spelling: `-A CHAIN [matches] -j TARGET [options]`. */
export type RuleText = string;

/** One own chain and the jump that leads into it. */
export type OwnChain = {
  readonly name: string;
  /** The builtin chain that the jump stands in. */
  readonly hook: "PREROUTING" | "OUTPUT";
  readonly jump: RuleText;
  readonly rules: readonly RuleText[];
};

/** What is ours whatever a table shows: the names of chains, and jumps into them as they are spelt. */
export type Own = { readonly chains: readonly string[]; readonly jumps: readonly RuleText[] };

/** The desired state of one family's nat table, as far as it is ours. */
export type Ruleset = { readonly family: Family; readonly chains: readonly OwnChain[] };

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

/** True when the table has a chain of one of these names: only ours have them. */
export function holdsAny(table: Table, names: readonly string[]): boolean {
  return names.some((name) => table.chains.has(name));
}
