// Finds the chains of nft's own that take a pod's traffic away before our jump sees it. Pure. What counts was tried on the
// kernel (test/level/netns/bypass.test.ts):
//   type nat, at iptables' priority (-100) or before   the first chain that translates a connection is the only one; a
//                                                      verdict without a translation goes on to the next chain
//   any other type, at conntrack's (-200) or before    notrack: what conntrack does not know never comes to nat
//   prerouting, at any priority                        tproxy: the packet goes to a socket of its choice

import type { Family } from "../table.ts";
import { couldMatch, type Flow } from "./match.ts";
import {
  field,
  keyOf,
  type NativeChain,
  type NativeView,
  type Statement,
  textField,
} from "./view.ts";

/** A base chain that can take traffic away, and the statement of it, or of a chain that it leads to, that does. */
export type NativeTaker = { readonly chain: NativeChain; readonly word: string };

/** A base chain that comes early enough to. */
export type Suspect = NativeChain & Required<Pick<NativeChain, "base">>;

/**
 * Base chains that come early enough to take away what a jump of ours waits for, whatever they hold. Iptables' own chains
 * in the tables `shown` are not among them: save shows what they hold, and tells when others stand in their table.
 */
export function suspects(view: NativeView, family: Family, shown: ReadonlySet<string>): Suspect[] {
  return view.chains
    .filter(isBase)
    .filter((chain) => chain.families.includes(family) && hookOf(chain) !== undefined)
    .filter((chain) => !(shown.has(chain.table) && isBuiltin(chain)))
    .filter(({ base }) => takersAt(base) !== undefined);
}

/** Those of the suspects that take traffic away; chains of a table that is switched off take nothing. */
export function takersAmong(
  view: NativeView,
  flow: Flow,
  chains: readonly Suspect[],
): NativeTaker[] {
  const leads = leadsOf(view, flow);
  return chains
    .filter(({ table }) => !view.dormant.includes(table))
    .flatMap((chain) => {
      const takes = takersAt(chain.base);
      const taker = statementsFrom(leads, chain).find((statement) => takes?.(statement));
      return taker === undefined ? [] : [{ chain, word: taker.word }];
    });
}

/** The builtin chain of the same hook, if a jump of ours stands in it. */
export function hookOf({ base }: NativeChain): "PREROUTING" | "OUTPUT" | undefined {
  if (base?.hook === "prerouting") return "PREROUTING";
  return base?.hook === "output" ? "OUTPUT" : undefined;
}

function isBase(chain: NativeChain): chain is Suspect {
  return chain.base !== undefined;
}

/** Where iptables has PREROUTING and OUTPUT. */
const iptablesPriorities = new Map([
  ["raw", -300],
  ["mangle", -150],
  ["nat", -100],
]);

/** A base chain as iptables itself makes it. */
export function isBuiltin(chain: NativeChain): boolean {
  if (chain.name !== chain.base?.hook.toUpperCase()) return false;
  const priority = iptablesPriorities.get(chain.table.replace(/^ip6? /, ""));
  return hookOf(chain) === undefined || chain.base.priority === priority;
}

type Takes = (statement: Statement) => boolean;

/** What takes traffic away at this place; undefined where nothing can. */
function takersAt({ type, hook, priority }: NonNullable<NativeChain["base"]>): Takes | undefined {
  if (type === "nat") return priority <= -100 ? translates : undefined;
  const places: readonly (readonly [boolean, Takes])[] = [
    [priority <= -200, (statement) => isOne(statement, "notrack", ["CT", "NOTRACK"])],
    [hook === "prerouting", (statement) => isOne(statement, "tproxy", ["TPROXY"])],
  ];
  const takes = places.filter(([here]) => here).map(([, test]) => test);
  return takes.length === 0 ? undefined : (statement) => takes.some((test) => test(statement));
}

/** Statements after which the next nat chain has its turn, or nobody (drop): no other program gets the packet. */
const passing = new Set([
  ...["match", "counter", "log", "limit", "quota", "last", "mangle", "set", "map", "meter"],
  ...["accept", "return", "continue", "drop", "reject", "jump", "goto", "vmap"],
  ...["notrack", "ct helper", "ct timeout", "ct expectation", "ct count"],
]);

function translates(statement: Statement): boolean {
  return statement.word === "xt" ? !isMatch(statement) : !passing.has(statement.word);
}

// iptables' targets come by their names, without what they were given: a CT may be a notrack.
function isOne(statement: Statement, word: string, targets: readonly string[]): boolean {
  if (statement.word !== "xt") return statement.word === word;
  return !isMatch(statement) && ["", ...targets].includes(textField(statement.value, "name"));
}

function isMatch({ value }: Statement): boolean {
  return textField(value, "type") === "match";
}

/** Where packets of ours go on from a chain, and what they meet in it. */
type Leads = {
  readonly statements: ReadonlyMap<string, readonly Statement[]>;
  readonly chains: ReadonlyMap<string, readonly string[]>;
};

function leadsOf(view: NativeView, flow: Flow): Leads {
  const statements = new Map<string, Statement[]>();
  for (const rule of view.rules.filter((each) => couldMatch(each.statements, flow))) {
    const key = keyOf(rule.table, rule.chain);
    const before = statements.get(key);
    if (before === undefined) statements.set(key, [...rule.statements]);
    else before.push(...rule.statements);
  }
  const chains = new Map<string, string[]>();
  for (const { table, name } of view.chains) {
    const before = chains.get(table);
    if (before === undefined) chains.set(table, [name]);
    else before.push(name);
  }
  return { statements, chains };
}

// Each chain once, however often it is jumped to.
function statementsFrom({ statements, chains }: Leads, { table, name }: NativeChain): Statement[] {
  const found = new Set([name]);
  const met: Statement[] = [];
  let isOpen = false;
  for (const chain of found) {
    for (const statement of statements.get(keyOf(table, chain)) ?? []) {
      met.push(statement);
      const targets = targetsOf(statement);
      for (const target of targets ?? []) found.add(target);
      isOpen ||= targets === undefined;
    }
  }
  // A map with a name may lead to any chain of its table.
  const others = isOpen ? (chains.get(table) ?? []).filter((chain) => !found.has(chain)) : [];
  return [...met, ...others.flatMap((chain) => statements.get(keyOf(table, chain)) ?? [])];
}

// Undefined for a map with a name: where it leads changes without the rule.
function targetsOf({ word, value }: Statement): string[] | undefined {
  if (word === "jump" || word === "goto") return [textField(value, "target")];
  if (word !== "vmap") return [];
  const entries = field(field(value, "data"), "set");
  if (!Array.isArray(entries)) return undefined;
  return entries.flatMap((entry) => {
    const verdict: unknown = Array.isArray(entry) ? entry[1] : undefined;
    return ["jump", "goto"].map((key) => textField(field(verdict, key), "target"));
  });
}
