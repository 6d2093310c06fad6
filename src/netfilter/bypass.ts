// Finds what takes a pod's traffic away before nat sees it, in iptables' own tables raw and mangle. Pure. With such a rule
// all of ours are in place, and nothing is redirected: what conntrack is kept from (raw) never comes to nat, and TPROXY
// (mangle) hands the packet to a socket of its choice. native/bypass.ts does the same for chains of nft's own.
import { readRule, targetOf } from "./rule.ts";
import { matchesRedirected } from "./shadow.ts";
import { type OwnChain, type RuleText, rulesOf, type Table } from "./table.ts";

/** The rules of raw or mangle that take away what a jump in this builtin chain waits for. */
export function takersIn(table: Table, hook: OwnChain["hook"]): RuleText[] {
  return chainsFrom(table, hook).flatMap((chain) =>
    rulesOf(table, chain).filter((rule) => matchesRedirected(rule) && takesAway(rule)),
  );
}

// Each chain once, however often it is jumped to: while a set is gone through, what is added to it is gone through too.
function chainsFrom(table: Table, hook: string): string[] {
  const found = new Set([hook]);
  for (const chain of found) {
    for (const rule of rulesOf(table, chain)) {
      const target = targetOf(rule);
      if (table.chains.has(target) && matchesRedirected(rule)) found.add(target);
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
