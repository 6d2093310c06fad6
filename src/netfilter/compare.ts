// Compares what we want with what is there, and names each difference. Text against text: our rules are spelt as
// iptables-save prints them, so equal means equal. Comments do not count (see rule.content).

import { ownChains } from "../mesh/linkerd/names.ts";
import { printable } from "../text/printable.ts";
import { jumpsInto } from "./plan.ts";
import { chainOf, content } from "./rule.ts";
import { foreignRedirects, shadowing } from "./shadow.ts";
import {
  type Backend,
  type Family,
  type OwnChain,
  type Ruleset,
  type RuleText,
  rulesOf,
  type Table,
  type TableName,
} from "./table.ts";

export type DriftKind =
  | "missing-chain"
  | "missing-rule"
  | "extra-rule"
  | "reordered"
  | "missing-jump"
  | "duplicate-jump"
  | "shadowed-jump"
  | "dormant-table"
  | "other-backend"
  | "unverifiable";

/** One difference: what was expected and what was found, as iptables-save lines; "" where there is nothing. */
export type Drift = {
  readonly kind: DriftKind;
  readonly family: Family;
  /** Not set: nat. */
  readonly table?: TableName;
  readonly chain: string;
  readonly expected: string;
  readonly found: string;
};

/** True when the rules that were found in an own chain are another tool's, and do what the expected ones do. */
export type StandFor = (expected: readonly RuleText[], found: readonly RuleText[]) => boolean;

/** All differences between the ruleset and the table, chain by chain; none when the pod is redirected as it should be. */
export function compare(ruleset: Ruleset, table: Table, standFor: StandFor = () => false): Drift[] {
  const { family } = ruleset;
  if (table.unverifiable !== undefined) {
    return [{ kind: "unverifiable", family, chain: "", expected: "", found: table.unverifiable }];
  }
  return ruleset.chains.flatMap((own) =>
    [...compareChain(own, table, standFor), ...compareJump(own, table)].map((found) => ({
      family,
      ...found,
    })),
  );
}

/**
 * What the other backend holds that must not be there: own chains (then the backend programmed last takes the traffic),
 * or someone else's redirects (then so does theirs or ours). A table that cannot be shown may hold either.
 */
export function compareOther(family: Family, table: Table, backend: Backend): Drift[] {
  if (table.unverifiable !== undefined) {
    const found = `${table.unverifiable} (${backend}, the other backend)`;
    return [{ kind: "unverifiable", family, chain: "", expected: "", found }];
  }
  const own = ownChains.filter((chain) => table.chains.has(chain));
  const found = [
    ...own.map((chain) => `own chain ${chain} in ${backend} as well`),
    ...foreignRedirects(table).map((rule) => `a redirect of someone else's in ${backend}: ${rule}`),
  ];
  return found.map((line) => {
    return { kind: "other-backend", family, chain: "", expected: "", found: line };
  });
}

/** One line for a person: kind, place, the line expected and the line found, which is cut where it is long. */
export function renderDrift(drift: Drift): string {
  const { kind, family, table = "nat", chain, expected, found } = drift;
  const sides = [
    expected === "" ? "" : `expected ${expected}`,
    found === "" ? "found nothing" : `found ${printable(found)}`,
  ];
  const place = chain === "" ? "" : ` ${chain}`;
  return `${kind} (${family} ${table}${place}): ${sides.filter((side) => side !== "").join("; ")}`;
}

type Difference = Omit<Drift, "family">;

function compareChain(own: OwnChain, table: Table, standFor: StandFor): Difference[] {
  const chain = own.name;
  const found = table.chains.get(chain);
  if (found === undefined) {
    return [{ kind: "missing-chain", chain, expected: `:${chain} - [0:0]`, found: "" }];
  }
  if (standFor(own.rules, found)) return [];
  const missing = without(own.rules, found);
  const extra = without(found, own.rules);
  return [
    ...missing.map(
      (expected): Difference => ({ kind: "missing-rule", chain, expected, found: "" }),
    ),
    ...extra.map((line): Difference => ({ kind: "extra-rule", chain, expected: "", found: line })),
    ...compareOrder(chain, without(own.rules, missing), without(found, extra)),
  ];
}

// Order is meaning: a redirect ahead of the proxy's own exemption sends the proxy's traffic back into the proxy.
// The same rules stand on both sides.
function compareOrder(
  chain: string,
  rules: readonly RuleText[],
  found: readonly RuleText[],
): Difference[] {
  const at = rules.findIndex((rule, i) => content(rule) !== content(found[i] ?? rule));
  const [expected, line] = [rules[at], found[at]];
  if (expected === undefined || line === undefined) return [];
  return [{ kind: "reordered", chain, expected, found: line }];
}

function compareJump(own: OwnChain, table: Table): Difference[] {
  const { hook: chain, jump: expected } = own;
  const rules = rulesOf(table, chain);
  const [first, ...others] = rules.filter((rule) => content(rule) === content(expected));
  // Also from other hooks: from OUTPUT, the inbound chain sends what leaves the pod to the proxy's inbound port.
  const odd = jumpsInto(own.name, table).filter((rule) => content(rule) !== content(expected));
  const extra = odd.map((found): Difference => {
    return { kind: "extra-rule", chain: chainOf(found), expected: "", found };
  });
  if (first === undefined) return [{ kind: "missing-jump", chain, expected, found: "" }, ...extra];
  const double = others.map((found): Difference => {
    return { kind: "duplicate-jump", chain, expected, found };
  });
  const taker = shadowing(table, rules.slice(0, rules.indexOf(first)));
  if (taker === undefined) return [...double, ...extra];
  return [...double, ...extra, { kind: "shadowed-jump", chain, expected, found: taker }];
}

/** What is left of `rules` when each of `others` takes one equal rule away. */
function without(rules: readonly RuleText[], others: readonly RuleText[]): RuleText[] {
  const left = new Map<string, number>();
  for (const other of others.map(content)) left.set(other, (left.get(other) ?? 0) + 1);
  return rules.filter((rule) => {
    const count = left.get(content(rule)) ?? 0;
    if (count > 0) left.set(content(rule), count - 1);
    return count === 0;
  });
}
