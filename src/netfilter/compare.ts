// Compares what we want with what is there, and names each difference. Text against text: our rules are spelt as
// iptables-save prints them, so equal means equal. Comments do not count (see rule.content).

import { printable } from "../text/printable.ts";
import { actingIn, ownIn, type Tables } from "./own.ts";
import { jumpsInto } from "./plan.ts";
import { chainOf, content, targetOf } from "./rule.ts";
import { foreignRedirects, shadowing } from "./shadow.ts";
import {
  type Backend,
  type BuiltinChain,
  type Family,
  type OwnChain,
  type OwnNames,
  type OwnTable,
  type Placed,
  type Ruleset,
  type RuleText,
  rulesOf,
  type Table,
  type TableName,
  type Traffic,
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

/** All differences between the ruleset and the tables; none when the pod is redirected as it should be. */
export function compare(ruleset: Ruleset, tables: Tables, standFor?: StandFor): Drift[] {
  const expecting = standFor === undefined ? ruleset : { ...ruleset, standFor };
  return ruleset.tables.flatMap((own) => compareTable(expecting, own, tables[own.name]));
}

/** How drifts name a table. */
export function inTable(name: TableName): Pick<Drift, "table"> {
  return name === "nat" ? {} : { table: name };
}

type Expecting = Pick<Ruleset, "family" | "traffic"> & { readonly standFor?: StandFor };

/** The same of one table, chain by chain. */
export function compareTable(expecting: Expecting, own: OwnTable, table: Table): Drift[] {
  const { family, traffic, standFor = () => false } = expecting;
  const place = { family, ...inTable(own.name) };
  if (table.unverifiable !== undefined) {
    return [{ kind: "unverifiable", ...place, chain: "", expected: "", found: table.unverifiable }];
  }
  const comparing = { own, table, traffic };
  const differences = [
    ...own.chains.flatMap((chain) => [
      ...compareChain(chain, table, standFor),
      ...compareJumps(chain, comparing),
    ]),
    ...compareActing(comparing),
    ...compareStale(own, table),
  ];
  return differences.map((found) => ({ ...place, ...found }));
}

/** What a backend must not hold, since ours is another one. */
export type Elsewhere = {
  readonly ruleset: Ruleset;
  readonly own: OwnNames;
  readonly backend: Backend;
};

/**
 * What a table of another backend holds that must not be there: own chains (then the backend programmed last takes the
 * traffic), or someone else's redirects (then so does theirs or ours). A table that cannot be shown may hold either.
 */
export function compareOther({ ruleset, own, backend }: Elsewhere, table: Table): Drift[] {
  const { family, traffic } = ruleset;
  const place = { family, ...inTable(own.name) };
  if (table.unverifiable !== undefined) {
    const found = `${table.unverifiable} (${backend}, the other backend)`;
    return [{ kind: "unverifiable", ...place, chain: "", expected: "", found }];
  }
  const acting = actingIn(own).filter((rule) => rulesOf(table, chainOf(rule)).includes(rule));
  const foreign = own.name === "nat" ? foreignRedirects(table, own.chains, traffic) : [];
  const found = [
    ...own.chains
      .filter((chain) => table.chains.has(chain))
      .map((chain) => `own chain ${chain} in ${backend} as well`),
    ...acting.map((rule) => `a rule of ours in ${backend} as well: ${rule}`),
    ...foreign.map((rule) => `a redirect of someone else's in ${backend}: ${rule}`),
  ];
  return found.map((line) => {
    return { kind: "other-backend", ...place, chain: "", expected: "", found: line };
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

/** A table as it was found, in which packets of this traffic count, and what it should hold. */
type Comparing = { readonly own: OwnTable; readonly table: Table; readonly traffic: Traffic };

// A chain may be led into from several builtin chains, each by one jump. Jumps that are not meant count also from other hooks:
// from OUTPUT, the inbound chain sends what leaves the pod to the proxy's inbound port.
function compareJumps(chain: OwnChain, comparing: Comparing): Difference[] {
  const { own, table } = comparing;
  const jumps = own.placed.filter(({ rule }) => targetOf(rule) === chain.name);
  const expected = jumps.map(({ rule }) => content(rule));
  const odd = jumpsInto(chain.name, table, own.name).filter((rule) => {
    return !expected.includes(content(rule));
  });
  const extra = odd.map((found): Difference => {
    return { kind: "extra-rule", chain: chainOf(found), expected: "", found };
  });
  return [...jumps.flatMap((jump) => comparePlaced(jump, jumpKinds, comparing)), ...extra];
}

// Rules that act by themselves, and the order of all that stand in one builtin chain.
function compareActing(comparing: Comparing): Difference[] {
  const { own } = comparing;
  const acting = actingIn(ownIn(own));
  const rules = own.placed.filter(({ rule }) => acting.includes(rule));
  const hooks = [...new Set(own.placed.map(({ hook }) => hook))];
  return [
    ...rules.flatMap((rule) => comparePlaced(rule, ruleKinds, comparing)),
    ...hooks.flatMap((hook) => comparePlacedOrder(hook, comparing)),
  ];
}

type Kinds = { readonly missing: DriftKind; readonly double: DriftKind };
const jumpKinds: Kinds = { missing: "missing-jump", double: "duplicate-jump" };
const ruleKinds: Kinds = { missing: "missing-rule", double: "extra-rule" };

function comparePlaced(placed: Placed, kinds: Kinds, comparing: Comparing): Difference[] {
  const { hook: chain, rule: expected } = placed;
  const { own, table, traffic } = comparing;
  const rules = rulesOf(table, chain);
  const [first, ...others] = rules.filter((rule) => content(rule) === content(expected));
  if (first === undefined) return [{ kind: kinds.missing, chain, expected, found: "" }];
  const double = others.map((found): Difference => {
    return { kind: kinds.double, chain, expected, found };
  });
  const ours = own.placed.map(({ rule }) => content(rule));
  const ahead = rules.slice(0, rules.indexOf(first));
  const foreign = ours.length === 1 ? ahead : ahead.filter((rule) => !ours.includes(content(rule)));
  const taker = shadowing(table, foreign, traffic);
  return taker === undefined
    ? double
    : [...double, { kind: "shadowed-jump", chain, expected, found: taker }];
}

// Of those that are there: what is missing is told anyway.
function comparePlacedOrder(hook: BuiltinChain, { own, table }: Comparing): Difference[] {
  const here = own.placed.filter((placed) => placed.hook === hook).map(({ rule }) => rule);
  if (here.length < 2) return [];
  const found = new Set(rulesOf(table, hook).map(content));
  const inPlace = [...found].filter((rule) => here.some((one) => content(one) === rule));
  const meant = here.filter((rule) => found.has(content(rule)));
  return compareOrder(hook, meant, inPlace);
}

/** Rules that earlier ones of ours left where none should be: those of chains show as the chains do. */
function compareStale({ stale }: OwnTable, table: Table): Difference[] {
  if (stale === undefined) return [];
  const acting = actingIn(stale).filter((rule) => rulesOf(table, chainOf(rule)).includes(rule));
  const chains = stale.chains.filter((chain) => table.chains.has(chain));
  return [
    ...chains.map((chain): Difference => {
      return { kind: "extra-rule", chain, expected: "", found: `:${chain} - [0:0]` };
    }),
    ...acting.map((found): Difference => {
      return { kind: "extra-rule", chain: chainOf(found), expected: "", found };
    }),
  ];
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
