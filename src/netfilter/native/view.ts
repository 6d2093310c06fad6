// Reads what `nft -j list ...` prints: the chains and rules of a netns as nft sees them, iptables' and everybody else's. Pure.
// CHECK asks for it where nft is on the node, since iptables-save shows iptables' own tables only (see bypass.ts).
import type { Family } from "../table.ts";

/** A chain. Only a base chain has a hook: packets come to it by themselves. */
export type NativeChain = {
  /** The families whose packets it sees: both in a table of family inet. */
  readonly families: readonly Family[];
  /** Its table as nft names it: `ip nat`. */
  readonly table: string;
  readonly name: string;
  readonly base?: NativeBase;
};

export type NativeBase = {
  readonly type: string;
  readonly hook: string;
  /** Lower numbers come first; iptables' raw is -300, conntrack -200, mangle -150, nat -100. */
  readonly priority: number;
};

/** One part of a rule, by its word: `match`, `redirect`, `jump`... */
export type Statement = { readonly word: string; readonly value: unknown };

export type NativeRule = {
  readonly table: string;
  readonly chain: string;
  readonly statements: readonly Statement[];
};

/** What nft told. */
export type NativeView = {
  readonly chains: readonly NativeChain[];
  readonly rules: readonly NativeRule[];
  /** The tables that are there and switched off: none of their rules acts. */
  readonly dormant: readonly string[];
};

/** What a netns holds may be a pod's to write: more than this is not read. About 20,000 rules. */
export const longestNativeChars = 8 * 1024 * 1024;

/** nft printed more than is read, or what is no listing. */
export class NativeSyntaxError extends Error {
  constructor(problem: string) {
    super(`nft printed ${problem}`);
    this.name = "NativeSyntaxError";
  }
}

/**
 * Reads a listing. Tables of families that see no IP packets are left out.
 * @throws NativeSyntaxError for what is no listing.
 */
export function parseNative(text: string): NativeView {
  if (text.length > longestNativeChars) {
    throw new NativeSyntaxError(`more than ${longestNativeChars} characters`);
  }
  const objects = text.trim() === "" ? [] : parseListing(text);
  return {
    chains: objects.flatMap((object) => readChain(field(object, "chain"))),
    rules: objects.flatMap((object) => readRule(field(object, "rule"))),
    dormant: objects.flatMap((object) => readDormant(field(object, "table"))),
  };
}

/** What several listings of one netns tell together. A chain is told by more than one. */
export function mergeViews(views: readonly NativeView[]): NativeView {
  const chains = views.flatMap((view) => view.chains);
  return {
    chains: [...new Map(chains.map((chain) => [keyOf(chain.table, chain.name), chain])).values()],
    rules: views.flatMap(({ rules }) => rules),
    dormant: views.flatMap(({ dormant }) => dormant),
  };
}

/** What names a chain, or the chain of a rule. No name has a line break in JSON, whatever the kernel took. */
export function keyOf(table: string, chain: string): string {
  return JSON.stringify([table, chain]);
}

/** A value of an object that nft printed; undefined if there is none. */
export function field(value: unknown, key: string): unknown {
  const isThere = typeof value === "object" && value !== null && Object.hasOwn(value, key);
  return isThere ? Reflect.get(value, key) : undefined;
}

/** The same where a text is expected; "" if there is none. */
export function textField(value: unknown, key: string): string {
  const found = field(value, key);
  return typeof found === "string" ? found : "";
}

function parseListing(text: string): unknown[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new NativeSyntaxError(`what is no JSON: ${JSON.stringify(text.slice(0, 80))}`);
  }
  const objects = field(value, "nftables");
  if (!Array.isArray(objects)) throw new NativeSyntaxError("JSON that is no listing");
  return objects;
}

const familiesOf: ReadonlyMap<string, readonly Family[]> = new Map([
  ["ip", ["ipv4"]],
  ["ip6", ["ipv6"]],
  ["inet", ["ipv4", "ipv6"]],
]);

function readChain(chain: unknown): NativeChain[] {
  const families = familiesOf.get(textField(chain, "family"));
  if (families === undefined) return [];
  const table = tableOf(chain, "table");
  const [type, hook, priority] = ["type", "hook", "prio"].map((key) => field(chain, key));
  const isBase = typeof type === "string" && typeof hook === "string";
  // A base chain whose priority cannot be read is held to come first.
  const base = { type, hook, priority: typeof priority === "number" ? priority : -Infinity };
  return [
    {
      families,
      table,
      name: textField(chain, "name"),
      ...(isBase ? { base: { ...base, type, hook } } : {}),
    },
  ];
}

function readRule(rule: unknown): NativeRule[] {
  const statements = field(rule, "expr");
  if (!(familiesOf.has(textField(rule, "family")) && Array.isArray(statements))) return [];
  return [
    {
      table: tableOf(rule, "table"),
      chain: textField(rule, "chain"),
      statements: statements.map(readStatement),
    },
  ];
}

// `{"accept": null}`: one word each.
function readStatement(statement: unknown): Statement {
  if (typeof statement !== "object" || statement === null) return { word: "", value: undefined };
  const [word = "", value] = Object.entries(statement)[0] ?? [];
  return { word, value };
}

// nft 1.0.6 prints freed memory in the place of a single flag ("flags": "Lester Gooch #5"). A table has no flag but these,
// and one that has an owner lets nobody else write rules into it.
function readDormant(table: unknown): string[] {
  const flags = field(table, "flags");
  if (flags === undefined || !familiesOf.has(textField(table, "family"))) return [];
  const others = [flags].flat().filter((flag) => flag !== "owner" && flag !== "persist");
  return others.length > 0 ? [tableOf(table, "name")] : [];
}

function tableOf(object: unknown, key: string): string {
  return `${textField(object, "family")} ${textField(object, key)}`;
}
