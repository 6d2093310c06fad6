// Finds what takes a pod's traffic away before nat sees it, in iptables' own tables raw and mangle. Pure. With such a rule
// all of ours are in place, and nothing is redirected: what conntrack is kept from (raw) never comes to nat, and TPROXY
// (mangle) hands the packet to a socket of its choice. native/bypass.ts does the same for chains of nft's own.
import { readRule, targetOf } from "./rule.ts";
import { matchesTraffic } from "./shadow.ts";
import { type BuiltinChain, type RuleText, rulesOf, type Table, type Traffic } from "./table.ts";

/** Whose rules in a table are looked at: not those of our own. */
export type Bystander = {
  readonly table: Table;
  readonly isOwn: (rule: RuleText) => boolean;
  readonly traffic: Traffic;
};

/** The rules of raw or mangle that take away what a rule of ours in a later table waits for, in this builtin chain. */
export function takersIn(bystander: Bystander, hook: BuiltinChain): RuleText[] {
  const { table, isOwn, traffic } = bystander;
  return chainsFrom(bystander, hook).flatMap((chain) =>
    rulesOf(table, chain).filter((rule) => {
      return !isOwn(rule) && matchesTraffic(rule, traffic) && takesAway(rule);
    }),
  );
}

// Each chain once, however often it is jumped to: while a set is gone through, what is added to it is gone through too.
function chainsFrom({ table, isOwn, traffic }: Bystander, hook: string): string[] {
  const found = new Set([hook]);
  for (const chain of found) {
    for (const rule of rulesOf(table, chain)) {
      const target = targetOf(rule);
      const isLed = table.chains.has(target) && !isOwn(rule);
      if (isLed && matchesTraffic(rule, traffic)) found.add(target);
    }
  }
  return [...found];
}

// CT has other uses: helpers, zones. What cannot be read may do anything.
function takesAway(line: RuleText): boolean {
  const rule = readRule(line);
  if (rule === undefined) return true;
  if (rule.target !== "CT") return rule.target === "NOTRACK" || rule.target === "TPROXY";
  return rule.targetOptions.includes("--notrack");
}
