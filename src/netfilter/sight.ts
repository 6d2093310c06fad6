// All that was seen of a netns, against what should be there. Pure: CHECK looks (upkeep/observe.ts), this judges.
import { compare, compareOther, type Drift, type StandFor } from "./compare.ts";
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
import type { Backend, Family, Ruleset, Table, TableName } from "./table.ts";

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
 * The drifts of a netns. A nat table of our backend that could not be read
 * is the caller's to tell; one of the other backend holds nothing of ours, which need not work on this node.
 */
export function compareSight(expected: Expected, sight: Sight): Drift[] {
  const { rulesets, backend, standFor } = expected;
  const seen = rulesets.flatMap((ruleset) => {
    const saves = sight.saves.filter(({ family }) => family === ruleset.family);
    return saves.map((save) => ({ ruleset, save, isOwn: save.backend === backend }));
  });
  const [own, others] = [true, false].map((isOwn) => seen.filter((pair) => pair.isOwn === isOwn));
  return [
    ...(own ?? []).flatMap(({ ruleset, save }) =>
      compareNat(save, sight, (nat) => compare(ruleset, nat, standFor)),
    ),
    ...(others ?? []).flatMap(({ save }) =>
      compareNat(save, sight, (nat) => compareOther(save.family, nat, save.backend)),
    ),
    ...seen.flatMap(({ ruleset, save }) => compareEarlierIn(save, ruleset, sight)),
    ...rulesets.flatMap((ruleset) => compareView(ruleset, backend, sight)),
  ];
}

function compareNat(
  { tables: { nat } }: Save,
  sight: Sight,
  judge: (table: Table) => readonly Drift[],
): Drift[] {
  if (nat instanceof Error) return [];
  return judge(nat).map((drift) => withForeign(drift, viewOf(sight)));
}

/** True where nft's view names chains that may take the traffic: then their rules have to be in it, too. */
export function asksForRules({ rulesets }: Expected, sight: Sight): boolean {
  return rulesets.some(({ family }) => {
    return suspects(viewOf(sight), family, shownIn(sight, family)).length > 0;
  });
}

const nothing: NativeView = { chains: [], rules: [], dormant: [] };

function viewOf({ native }: Sight): NativeView {
  return native === undefined || native instanceof Error ? nothing : native;
}

const earlier: readonly TableName[] = ["raw", "mangle"];

// A table that is not shown is looked at in nft's view, where there is one: its chains are not in shownIn() then. A save of
// which nothing can be read is told by its nat table.
function compareEarlierIn({ backend, tables }: Save, ruleset: Ruleset, sight: Sight): Drift[] {
  if (tables.nat instanceof Error) return [];
  const isSeen = backend === "nft" && viewOf(sight) !== nothing;
  return earlier.flatMap((name) => {
    const table = tables[name];
    const isShown = !(table instanceof Error) && table.unverifiable === undefined;
    if (!isShown && isSeen) return [];
    return table instanceof Error
      ? [hidden(ruleset.family, table.message, name)]
      : compareEarlier(ruleset, name, table);
  });
}

function compareView(ruleset: Ruleset, backend: Backend, sight: Sight): Drift[] {
  const { family } = ruleset;
  if (sight.native instanceof Error) return [hidden(family, sight.native.message)];
  const view = viewOf(sight);
  return [
    // Our rules in legacy do not mind what nft's table does.
    ...(backend === "nft" ? compareDormant(family, view) : []),
    ...comparePartly(family, view),
    ...compareNative(ruleset, view, shownIn(sight, family)),
  ];
}

// iptables' own tables that a save showed, as nft names them. One of raw or mangle that is not shown whole is looked at in
// nft's view; that nat is not is told in any case.
function shownIn({ saves }: Sight, family: Family): Set<string> {
  const all = saves.filter((save) => save.backend === "nft" && save.family === family);
  const shown = all.flatMap(({ tables }) =>
    (["raw", "mangle", "nat"] as const).filter((name) => {
      const table = tables[name];
      return !(table instanceof Error) && (name === "nat" || table.unverifiable === undefined);
    }),
  );
  return new Set(shown.map((name) => nativeName(family, name)));
}
