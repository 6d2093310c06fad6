// Drift that stands outside of our tables as save shows them: what takes our traffic away in earlier tables, or in chains
// of nft's own, and a table that is switched off. Pure; CHECK asks for it, besides compare.ts.
import { fewOf } from "../text/telling.ts";
import { type Bystander, takersIn } from "./bypass.ts";
import { type Drift, inTable } from "./compare.ts";
import { hookOf, isBuiltin, suspects, takersAmong } from "./native/bypass.ts";
import { foreignRules, partlyShown } from "./native/foreign.ts";
import type { NativeChain, NativeView } from "./native/view.ts";
import { ownOf } from "./own.ts";
import { chainOf } from "./rule.ts";
import {
  type BuiltinChain,
  type Family,
  type OwnTable,
  type Placed,
  type Ruleset,
  type Table,
  type TableName,
  tableNames,
} from "./table.ts";

/** What takes away, in raw or mangle, what rules of ours in later tables wait for. */
export function compareEarlier(ruleset: Ruleset, name: TableName, table: Table): Drift[] {
  const { family } = ruleset;
  const hooks = laterHooks(ruleset, name);
  if (hooks.length === 0) return [];
  if (table.unverifiable !== undefined) return [hidden(family, table.unverifiable, name)];
  const bystander = bystanderOf(ruleset, name, table);
  return hooks.flatMap((chain) =>
    takersIn(bystander, chain).map((found): Drift => {
      return { kind: "shadowed-jump", family, table: name, chain, expected: "", found };
    }),
  );
}

function laterHooks({ tables }: Ruleset, name: TableName): BuiltinChain[] {
  const later = tableNames.slice(tableNames.indexOf(name) + 1);
  const placed = tables.filter((own) => later.includes(own.name)).flatMap((own) => own.placed);
  return [...new Set(placed.map(({ hook }) => hook))];
}

function bystanderOf(ruleset: Ruleset, name: TableName, table: Table): Bystander {
  const names = ownOf([ruleset]).find((own) => own.name === name);
  const isOwn = (rule: string) => {
    return names?.chains.includes(chainOf(rule)) === true || names?.placed.includes(rule) === true;
  };
  return { table, isOwn, traffic: ruleset.traffic };
}

// A chain that translates comes behind mangle and raw, which have had the packet by then.
function losersTo(chain: NativeChain, { name, placed }: OwnTable): Placed[] {
  if (chain.base?.type === "nat" && name !== "nat") return [];
  return placed.filter(({ hook }) => hook === hookOf(chain));
}

/** How many foreign base chains are looked into. A netns has a handful; the kernel takes a thousand a hook. */
const suspectsMax = 32;

/**
 * What takes it away in chains of nft's own. Of iptables' own tables, those in `shown` have been read from a save. The
 * view holds the rules of all suspects, or there is none.
 */
export function compareNative(
  ruleset: Ruleset,
  view: NativeView,
  shown: ReadonlySet<string>,
): Drift[] {
  const { family } = ruleset;
  const found = suspects(view, family, shown);
  const takers = takersAmong(view, ruleset, found.slice(0, suspectsMax));
  const drifts = takers.flatMap(({ chain, word }) =>
    ruleset.tables.flatMap((own) =>
      losersTo(chain, own).map(({ hook, rule }): Drift => {
        const found = `${describe(chain)} takes the traffic before it: ${word}`;
        const place = { family, ...inTable(own.name) };
        return { kind: "shadowed-jump", ...place, chain: hook, expected: rule, found };
      }),
    ),
  );
  const more = found.length - suspectsMax;
  const rest = `${more} more base chains of nft's own, too many to look into`;
  return more > 0 ? [...drifts, hidden(family, rest)] : drifts;
}

/** One of iptables' own tables that rules of ours stand in is there, and switched off: none of its rules acts. */
export function compareDormant({ family, tables }: Ruleset, view: NativeView): Drift[] {
  return tables.flatMap(({ name }): Drift[] => {
    const table = nativeName(family, name);
    if (!view.dormant.includes(table)) return [];
    const found = `table ${table} is dormant: its rules are there, and none of them acts`;
    return [{ kind: "dormant-table", family, table: name, chain: "", expected: "", found }];
  });
}

/** Rules of nft's own in a table of ours that save shows in part: `tcp dport vmap { 80 : accept }` as `-p tcp`. */
export function comparePartly(ruleset: Ruleset, view: NativeView): Drift[] {
  const { family, tables } = ruleset;
  return tables.flatMap(({ name }) => {
    const chains = partlyShown(view, nativeName(family, name), ruleset);
    const all = `rules of nft's own, which iptables-save shows in part, in chain ${few(chains.map(quoted))}`;
    return chains.length === 0 ? [] : [hidden(family, all, name)];
  });
}

/** A drift of a table that is not shown whole also tells what stands there of nft's own, as far as the view knows. */
export function withForeign(drift: Drift, view: NativeView): Drift {
  if (drift.kind !== "unverifiable") return drift;
  const { family, table = "nat" } = drift;
  const rules = foreignRules(view, nativeName(family, table));
  const names = [
    ...foreignBases(family, view, table),
    ...rules.map((name) => `rules of nft's own in chain ${quoted(name)}`),
  ];
  return names.length === 0 ? drift : { ...drift, found: `${drift.found} It holds ${few(names)}.` };
}

/** Base chains of nft's own in one of iptables' tables, each in words: where they are, save does not show all of it. */
export function foreignBases(family: Family, view: NativeView, name: TableName = "nat"): string[] {
  const bases = view.chains.filter(({ table, base }) => {
    return table === nativeName(family, name) && base !== undefined;
  });
  return bases.filter((chain) => !isBuiltin(chain)).map(describe);
}

/** The first few of these, and how many more there are. */
export function few(names: readonly string[]): string {
  return fewOf(names, mostNames).join(", ");
}

const mostNames = 5;

/** A drift that says that a table, or part of it, cannot be shown. */
export function hidden(family: Family, found: string, table: TableName = "nat"): Drift {
  return { kind: "unverifiable", family, table, chain: "", expected: "", found };
}

/** iptables' tables of a family as nft names them. */
export function nativeName(family: Family, table: TableName): string {
  return `${family === "ipv4" ? "ip" : "ip6"} ${table}`;
}

function describe({ table, name, base }: NativeChain): string {
  const place =
    base === undefined ? "" : ` (${base.type}, ${base.hook}, priority ${base.priority})`;
  return `nft's chain ${quoted(name)} in table ${quoted(table)}${place}`;
}

// Names are a pod's to choose, and at most 255 bytes long.
function quoted(name: string): string {
  return /^[\w .-]+$/.test(name) ? name : JSON.stringify(name);
}
