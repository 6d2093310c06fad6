// Which chains and rules in a table are ours, by the rulesets that were or will be written. Removal, repair and the search
// for leftovers use it. Pure.
import { chainOf, targetOf } from "./rule.ts";
import {
  emptyTable,
  type OwnNames,
  type OwnTable,
  type Ruleset,
  type RuleText,
  rulesOf,
  type Table,
  type TableName,
  tableNames,
} from "./table.ts";

/** What is ours in one netns, table by table; each table at most once. */
export type Own = readonly OwnNames[];

/** The tables as one save shows them. */
export type Tables = Readonly<Record<TableName, Table>>;

/** Those of a fresh netns. */
export const emptyTables: Tables = { raw: emptyTable, mangle: emptyTable, nat: emptyTable };

/** What of these rulesets, of whichever families, stands in tables. */
export function ownOf(rulesets: readonly Ruleset[]): Own {
  const all = rulesets.flatMap(({ tables }) => tables);
  return tableNames.flatMap((name) => {
    const ones = all.filter((table) => table.name === name);
    return ones.length === 0 ? [] : [together(name, ones)];
  });
}

/** The names of one table. */
export function ownIn(table: OwnTable): OwnNames {
  return together(table.name, [table]);
}

function together(name: TableName, ones: readonly OwnTable[]): OwnNames {
  const named = ones.flatMap(namesOf);
  return {
    name,
    chains: distinct(named.flatMap(({ chains }) => chains)),
    placed: distinct(named.flatMap(({ placed }) => placed)),
  };
}

// What is stale goes like the rest.
function namesOf({ name, chains, placed, aliases = [], stale }: OwnTable): OwnNames[] {
  const own = {
    name,
    chains: chains.map((chain) => chain.name),
    placed: [...placed.map(({ rule }) => rule), ...aliases],
  };
  return stale === undefined ? [own] : [own, stale];
}

/** The ruleset that also takes out what earlier ones of the same netns had, and it has not. */
export function replacing(ruleset: Ruleset, former: readonly Ruleset[]): Ruleset {
  const own = ownOf([ruleset]);
  const tables = ownOf(former).flatMap((names): OwnTable[] => {
    const kept = own.find(({ name }) => name === names.name);
    const stale = {
      name: names.name,
      chains: without(names.chains, kept?.chains),
      // A jump into a chain that is kept goes with what is not meant of that chain.
      placed: without(names.placed, kept?.placed).filter((rule) => {
        return kept?.chains.includes(targetOf(rule)) !== true;
      }),
    };
    if (stale.chains.length + stale.placed.length === 0) return [];
    const table = ruleset.tables.find(({ name }) => name === names.name);
    return [{ ...(table ?? { name: names.name, chains: [], placed: [] }), stale }];
  });
  const names = tables.map(({ name }) => name);
  const others = ruleset.tables.filter(({ name }) => !names.includes(name));
  return tables.length === 0 ? ruleset : { ...ruleset, tables: [...others, ...tables] };
}

function without(texts: readonly string[], others: readonly string[] = []): string[] {
  return texts.filter((text) => !others.includes(text));
}

/** Rules that act by themselves in builtin chains: they lead into no chain of ours. */
export function actingIn({ chains, placed }: OwnNames): RuleText[] {
  return placed.filter((rule) => !chains.includes(targetOf(rule)));
}

/** True when a table holds a chain of ours, or a rule that acts by itself. */
export function holdsOwn(names: OwnNames, table: Table): boolean {
  if (names.chains.some((name) => table.chains.has(name))) return true;
  return actingIn(names).some((rule) => rulesOf(table, chainOf(rule)).includes(rule));
}

function distinct(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}
