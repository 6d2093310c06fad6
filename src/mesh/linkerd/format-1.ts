// Rulesets as records of format 1 have them: Linkerd's alone, in nat alone. Pure; attachment/record.ts reads such records.
import type { Family, Ruleset, RuleText } from "../../netfilter/table.ts";
import { linkerdJumps } from "./names.ts";
import { traffic } from "./ruleset.ts";

/** A ruleset of format 1. */
export type Ruleset1 = {
  readonly family: Family;
  readonly chains: readonly {
    readonly name: string;
    readonly hook: "PREROUTING" | "OUTPUT";
    readonly jump: RuleText;
    readonly rules: readonly RuleText[];
  }[];
};

/** The same, as rulesets are today. */
export function fromRuleset1({ family, chains }: Ruleset1): Ruleset {
  const nat = {
    name: "nat",
    chains: chains.map(({ name, rules }) => ({ name, rules })),
    placed: chains.map(({ hook, jump }) => ({ hook, rule: jump })),
    aliases: linkerdJumps,
  } as const;
  return { family, tables: [nat], traffic };
}
