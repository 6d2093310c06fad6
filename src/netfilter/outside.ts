// Drift that stands outside of the nat table that save shows: what takes our traffic away in raw and mangle, or in chains
// of nft's own, and a table that is switched off. Pure; CHECK asks for it, besides compare.ts.
import { takersIn } from "./bypass.ts";
import type { Drift } from "./compare.ts";
import { hookOf, isBuiltin, suspects, takersAmong } from "./native/bypass.ts";
import { foreignRules, partlyShown } from "./native/foreign.ts";
import type { NativeChain, NativeView } from "./native/view.ts";
import type { Family, Ruleset, Table, TableName } from "./table.ts";

/** What takes away, in raw or mangle, what the ruleset's jumps wait for. */
export function compareEarlier(
  { family, chains }: Ruleset,
  name: TableName,
  table: Table,
): Drift[] {
  if (table.unverifiable !== undefined) return [hidden(family, table.unverifiable, name)];
  return chains.flatMap(({ hook: chain }) =>
    takersIn(table, chain).map((found): Drift => {
      return { kind: "shadowed-jump", family, table: name, chain, expected: "", found };
    }),
  );
}

/** How many foreign base chains are looked into. A netns has a handful; the kernel takes a thousand a hook. */
const suspectsMax = 32;

/**
 * What takes it away in chains of nft's own. Of iptables' own tables, those in `shown` have been read from a save. The
 * view holds the rules of all suspects, or there is none.
 */
export function compareNative(
  { family, chains }: Ruleset,
  view: NativeView,
  shown: ReadonlySet<string>,
): Drift[] {
  const found = suspects(view, family, shown);
  const takers = takersAmong(view, family, found.slice(0, suspectsMax));
  const drifts = takers.flatMap(({ chain, word }) =>
    chains
      .filter(({ hook }) => hook === hookOf(chain))
      .map(({ hook, jump }): Drift => {
        const line = `${describe(chain)} takes the traffic before it: ${word}`;
        return { kind: "shadowed-jump", family, chain: hook, expected: jump, found: line };
      }),
  );
  const more = found.length - suspectsMax;
  const rest = `${more} more base chains of nft's own, too many to look into`;
  return more > 0 ? [...drifts, hidden(family, rest)] : drifts;
}

/** iptables' own nat table is there, and switched off: none of the rules in it acts. */
export function compareDormant(family: Family, view: NativeView): Drift[] {
  const table = natOf(family);
  if (!view.dormant.includes(table)) return [];
  const found = `table ${table} is dormant: its rules are there, and none of them acts`;
  return [{ kind: "dormant-table", family, chain: "", expected: "", found }];
}

/** Rules of nft's own in iptables' nat table that save shows in part: `tcp dport vmap { 80 : accept }` as `-p tcp`. */
export function comparePartly(family: Family, view: NativeView): Drift[] {
  const chains = partlyShown(view, natOf(family), family);
  const all = `rules of nft's own, which iptables-save shows in part, in chain ${few(chains.map(quoted))}`;
  return chains.length === 0 ? [] : [hidden(family, all)];
}

/** A drift of a nat table that is not shown whole also tells what stands there of nft's own, as far as the view knows. */
export function withForeign(drift: Drift, view: NativeView): Drift {
  if (drift.kind !== "unverifiable") return drift;
  const rules = foreignRules(view, natOf(drift.family));
  const names = [
    ...foreignBases(drift.family, view),
    ...rules.map((name) => `rules of nft's own in chain ${quoted(name)}`),
  ];
  return names.length === 0 ? drift : { ...drift, found: `${drift.found} It holds ${few(names)}.` };
}

/** Base chains of nft's own in iptables' nat table, each in words: where they are, save does not show all of it. */
export function foreignBases(family: Family, view: NativeView): string[] {
  const bases = view.chains.filter(({ table, base }) => {
    return table === natOf(family) && base !== undefined;
  });
  return bases.filter((chain) => !isBuiltin(chain)).map(describe);
}

/** The first few of these, and how many more there are. */
export function few(names: readonly string[]): string {
  const more = names.length > 5 ? `, and ${names.length - 5} more` : "";
  return `${names.slice(0, 5).join(", ")}${more}`;
}

/** A drift that says that a table, or part of it, cannot be shown. */
export function hidden(family: Family, found: string, table: TableName = "nat"): Drift {
  return { kind: "unverifiable", family, table, chain: "", expected: "", found };
}

/** iptables' tables of a family as nft names them. */
export function nativeName(family: Family, table: TableName): string {
  return `${family === "ipv4" ? "ip" : "ip6"} ${table}`;
}

function natOf(family: Family): string {
  return nativeName(family, "nat");
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
