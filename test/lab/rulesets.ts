// Rulesets as the tests look at them: own chains with the jumps that lead into them, and tables with nat alone.
import { ownOf, type Tables } from "../../src/netfilter/own.ts";
import { targetOf } from "../../src/netfilter/rule.ts";
import {
  type BuiltinChain,
  emptyTable,
  type Family,
  type OwnNames,
  type OwnTable,
  type Ruleset,
  type RuleText,
  type Table,
  type Traffic,
} from "../../src/netfilter/table.ts";

/** TCP that leaves the pod or comes from outside, as a sidecar takes it. */
export const tcp: Traffic = { protocols: ["tcp"], loopback: false };

/** An own chain, and the one jump into it. */
export type LedChain = {
  readonly name: string;
  readonly hook: BuiltinChain;
  readonly jump: RuleText;
  readonly rules: readonly RuleText[];
};

/** A nat table of such chains. */
export function natWith(chains: readonly LedChain[]): OwnTable {
  return {
    name: "nat",
    chains: chains.map(({ name, rules }) => ({ name, rules })),
    placed: chains.map(({ hook, jump }) => ({ hook, rule: jump })),
  };
}

/** A ruleset of nat alone. */
export function rulesetWith(family: Family, chains: readonly LedChain[]): Ruleset {
  return { family, tables: [natWith(chains)], traffic: tcp };
}

/** The nat table of a ruleset. */
export function natIn({ tables }: Ruleset): OwnTable {
  const nat = tables.find(({ name }) => name === "nat");
  if (nat === undefined) throw new Error("the ruleset has no nat table");
  return nat;
}

/** Its own chains, each with the jump into it. */
export function ledChains(ruleset: Ruleset): LedChain[] {
  const { chains, placed } = natIn(ruleset);
  return chains.map(({ name, rules }) => {
    const jump = placed.find(({ rule }) => targetOf(rule) === name);
    if (jump === undefined) throw new Error(`no jump leads into ${name}`);
    return { name, hook: jump.hook, jump: jump.rule, rules };
  });
}

/** What of nat is a ruleset's own. */
export function namesIn(ruleset: Ruleset): OwnNames {
  const names = ownOf([ruleset]).find(({ name }) => name === "nat");
  if (names === undefined) throw new Error("the ruleset has no nat table");
  return names;
}

/** Tables of which nat alone holds something. */
export function withNat(nat: Table): Tables {
  return { raw: emptyTable, mangle: emptyTable, nat };
}
