// Judges everything that was seen of a netns against what should be there. Pure; upkeep/observe.ts does the looking for
// CHECK.
import { traitsOf } from "./backend.ts";
import { compareOther, compareTable, type Drift, type StandFor } from "./compare.ts";
import { suspects } from "./native/bypass.ts";
import type { NativeView } from "./native/view.ts";
import {
  compareDormant,
  compareEarlier,
  compareNative,
  comparePartly,
  hidden,
  nativeName,
  withForeign,
} from "./outside.ts";
import { ownOf } from "./own.ts";
import {
  type Backend,
  type Family,
  type Ruleset,
  type Table,
  type TableName,
  tableNames,
} from "./table.ts";

/** One family's tables as one backend's save shows them, or why it does not. */
export type Save = {
  readonly family: Family;
  readonly backend: Backend;
  readonly tables: Readonly<Record<TableName, Table | Error>>;
};

export type Sight = {
  readonly saves: readonly Save[];
  /** What nft told, or why its telling cannot be used; undefined where it was not to be asked. */
  readonly native: NativeView | Error | undefined;
};

/** What should be there: through which backend it was written, and whose rules may stand for ours. */
export type Expected = {
  readonly rulesets: readonly Ruleset[];
  readonly backend: Backend;
  readonly standFor: StandFor;
};

/**
 * The drifts of a netns. A table of ours in our backend that could not be read is the caller's to tell; one in another backend
 * holds nothing of ours, which need not work on this node.
 */
export function compareSight(expected: Expected, sight: Sight): Drift[] {
  const { rulesets, backend } = expected;
  const seen = rulesets.flatMap((ruleset) => {
    const saves = sight.saves.filter(({ family }) => family === ruleset.family);
    return saves.map((save) => ({ ruleset, save }));
  });
  const own = seen.filter(({ save }) => save.backend === backend);
  const others = seen.filter(({ save }) => save.backend !== backend);
  const shown = [
    ...own.flatMap(({ ruleset, save }) => compareOwn({ ...expected, ruleset }, save)),
    ...others.flatMap(({ ruleset, save }) => compareElsewhere(ruleset, save)),
  ];
  return [
    ...shown.map((drift) => withForeign(drift, viewOf(sight))),
    ...seen.flatMap(({ ruleset, save }) => compareEarlierIn(save, ruleset, sight)),
    ...rulesets.flatMap((ruleset) => compareView(ruleset, backend, sight)),
  ];
}

type One = Pick<Expected, "standFor"> & { readonly ruleset: Ruleset };

function compareOwn({ ruleset, standFor }: One, { tables }: Save): Drift[] {
  return ruleset.tables.flatMap((own) => {
    const table = tables[own.name];
    return table instanceof Error ? [] : compareTable({ ...ruleset, standFor }, own, table);
  });
}

function compareElsewhere(ruleset: Ruleset, { tables, backend }: Save): Drift[] {
  return ownOf([ruleset]).flatMap((own) => {
    const table = tables[own.name];
    return table instanceof Error ? [] : compareOther({ ruleset, own, backend }, table);
  });
}

/** True where nft's view names chains that may take the traffic: then their rules have to be in it, too. */
export function asksForRules({ rulesets }: Expected, sight: Sight): boolean {
  return rulesets.some((ruleset) => {
    return suspects(viewOf(sight), ruleset.family, shownIn(sight, ruleset)).length > 0;
  });
}

const nothing: NativeView = { chains: [], rules: [], dormant: [] };

function viewOf({ native }: Sight): NativeView {
  return native === undefined || native instanceof Error ? nothing : native;
}

const earlier: readonly TableName[] = ["raw", "mangle"];

// A table that is not shown is looked at in nft's view, where there is one: its chains are not in shownIn() then. A save of
// which nothing can be read is told by its nat table, and what is not shown of a table of ours by that.
function compareEarlierIn({ backend, tables }: Save, ruleset: Ruleset, sight: Sight): Drift[] {
  if (tables.nat instanceof Error) return [];
  const isSeen = traitsOf(backend).isShownByNft && viewOf(sight) !== nothing;
  return earlier.flatMap((name) => {
    const table = tables[name];
    const isShown = !(table instanceof Error) && table.unverifiable === undefined;
    if (!isShown && (isSeen || isOurs(ruleset, name))) return [];
    return table instanceof Error
      ? [hidden(ruleset.family, table.message, name)]
      : compareEarlier(ruleset, name, table);
  });
}

function isOurs({ tables }: Ruleset, name: TableName): boolean {
  return tables.some((own) => own.name === name);
}

function compareView(ruleset: Ruleset, backend: Backend, sight: Sight): Drift[] {
  const { family } = ruleset;
  if (sight.native instanceof Error) return [hidden(family, sight.native.message)];
  const view = viewOf(sight);
  return [
    // Rules in tables of another kind do not mind what those of nft do.
    ...(traitsOf(backend).isShownByNft ? compareDormant(ruleset, view) : []),
    ...comparePartly(ruleset, view),
    ...compareNative(ruleset, view, shownIn(sight, ruleset)),
  ];
}

// iptables' own tables that a save showed, as nft names them. Another one that is not shown whole is looked at in nft's view;
// that one of ours is not is told in any case.
function shownIn({ saves }: Sight, ruleset: Ruleset): Set<string> {
  const { family } = ruleset;
  const all = saves.filter((save) => {
    return traitsOf(save.backend).isShownByNft && save.family === family;
  });
  const shown = all.flatMap(({ tables }) =>
    tableNames.filter((name) => {
      const table = tables[name];
      if (table instanceof Error) return false;
      return table.unverifiable === undefined || isOurs(ruleset, name);
    }),
  );
  return new Set(shown.map((name) => nativeName(family, name)));
}
