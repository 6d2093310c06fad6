// Plans the steps that lead one table from what is there to what we want, or to nothing of ours. Only own chains, rules of
// ours and jumps into own chains are ever named: foreign rules are neither written nor moved. Nothing that was read is written
// back: a jump is taken out in our own spelling of it (respell.ts), or not at all. transaction.ts puts the tables together.
import { actingIn } from "./own.ts";
import { respell } from "./respell.ts";
import { chainOf, targetOf } from "./rule.ts";
import { shadowing } from "./shadow.ts";
import {
  type BuiltinChain,
  builtinChains,
  type OwnChain,
  type OwnNames,
  type OwnTable,
  type Placed,
  type RuleText,
  rulesOf,
  type Table,
  type TableName,
  type Traffic,
} from "./table.ts";

/** One line of a table's part of a transaction, in restore's terms. */
export type Step =
  /** -N: makes the chain, and refuses the whole table where it is there already. */
  | { readonly do: "create-chain"; readonly chain: string }
  /** `:CHAIN - [0:0]`: makes the chain, or empties it where it is there already. */
  | { readonly do: "reset-chain"; readonly chain: string }
  | { readonly do: "append"; readonly rule: RuleText }
  /** -I at the head of the rule's chain. */
  | { readonly do: "insert"; readonly rule: RuleText }
  /** -D: refuses the whole table where no such rule is. */
  | { readonly do: "delete"; readonly rule: RuleText }
  | { readonly do: "delete-chain"; readonly chain: string };

/** For a table that should hold nothing of ours. Where a chain of ours is there already nothing happens at all (-N). */
export function planFresh({ chains, placed }: OwnTable): Step[] {
  return [
    ...chains.map(({ name }): Step => ({ do: "create-chain", chain: name })),
    ...chains.flatMap(({ rules }) => rules.map(append)),
    ...insertions(placed),
  ];
}

/**
 * From the table as observed to what it should hold, in a ruleset for this traffic; empty when it is there already, to the
 * letter. Jumps that are not ours to spell (see oddJumps) stay, and so does what is stale (planStale).
 */
export function plan(own: OwnTable, table: Table, traffic: Traffic): Step[] {
  const unfilled = own.chains.filter((chain) => !isFilled(chain, table));
  const hooks = [...new Set([...own.placed.map(({ hook }) => hook), ...builtinChains[own.name]])];
  const loose = hooks.filter((hook) => !isInPlace(hook, own, { table, traffic }));
  return [
    ...unfilled.map(({ name }): Step => ({ do: "reset-chain", chain: name })),
    ...unfilled.flatMap(({ rules }) => rules.map(append)),
    ...loose.flatMap((hook) => oursIn(hook, own, table).map(({ spelt }) => remove(spelt))),
    ...insertions(own.placed.filter(({ hook }) => loose.includes(hook))),
  ];
}

/** What is stale goes, from the table as it is when the steps of plan() are done. */
export function planStale({ chains, stale }: OwnTable, table: Table): Step[] {
  if (stale === undefined) return [];
  const filled = chains.map(({ name, rules }) => [name, rules] as const);
  return planRemoval(stale, { ...table, chains: new Map([...table.chains, ...filled]) });
}

/**
 * From the table as observed to one without what is ours; empty when there is none. A chain that a rule still leads into
 * stays, empty, which lets all traffic pass.
 */
export function planRemoval(names: OwnNames, table: Table): Step[] {
  const there = names.chains.filter((chain) => table.chains.has(chain));
  const free = there.filter((chain) => holdersOf(chain, table, names).length === 0);
  const full = there.filter((chain) => free.includes(chain) || rulesOf(table, chain).length > 0);
  return [
    ...full.map((chain): Step => ({ do: "reset-chain", chain })),
    ...there.flatMap((chain) => deletions(chain, table, names)),
    ...actingIn(names).flatMap((rule) => found(rule, table).map(remove)),
    ...free.map((chain): Step => ({ do: "delete-chain", chain })),
  ];
}

/** Rules that keep the kernel from letting go of a chain when planRemoval has done its work. */
export function holdersOf(chain: string, table: Table, names: OwnNames): RuleText[] {
  const { name, chains } = names;
  const builtin: readonly string[] = builtinChains[name];
  // A jump from someone else's chain is theirs.
  const foreign = [...table.chains]
    .filter(([other]) => !builtin.includes(other) && !chains.includes(other))
    .flatMap(([, rules]) => leadingTo(chain, rules));
  return [...oddJumps(chain, table, names), ...foreign];
}

function isFilled(own: OwnChain, table: Table): boolean {
  const rules = table.chains.get(own.name);
  return rules?.length === own.rules.length && rules.every((rule, i) => rule === own.rules[i]);
}

type Found = { readonly table: Table; readonly traffic: Traffic };

// What of ours is in a builtin chain is just what should be, to the letter and in our order, with nothing ahead that takes the
// traffic. Else all of it is taken out and put in anew at the head, in the same commit: of several the order counts, and of
// two equal rules -D takes the first, so "delete the second" cannot be said.
function isInPlace(hook: BuiltinChain, own: OwnTable, { table, traffic }: Found): boolean {
  const texts = own.placed.filter((one) => one.hook === hook).map(({ rule }) => rule);
  const there = oursIn(hook, own, table).map(({ rule }) => rule);
  if (there.length !== texts.length || texts.some((rule, i) => rule !== there[i])) return false;
  const rules = rulesOf(table, hook);
  const last = texts.at(-1);
  if (last === undefined) return true;
  const ahead = rules.slice(0, rules.indexOf(last)).filter((rule) => !texts.includes(rule));
  return shadowing(table, ahead, traffic) === undefined;
}

/** A rule as it was found, and as we spell it. */
type Spelt = { readonly rule: RuleText; readonly spelt: RuleText };

// Jumps into chains of ours in all forms that we can spell; a rule that acts by itself only as it is written.
function oursIn(hook: BuiltinChain, { chains, placed }: OwnTable, table: Table): Spelt[] {
  const texts = new Set(placed.map(({ rule }) => rule));
  return rulesOf(table, hook).flatMap((rule) => {
    if (texts.has(rule)) return [{ rule, spelt: rule }];
    const led = chains.find(({ name }) => leadsTo(name, rule));
    const spelt = led === undefined ? undefined : respell(rule, led.name);
    return spelt === undefined ? [] : [{ rule, spelt }];
  });
}

/** All jumps into a chain from the builtin chains of a table of this name. */
export function jumpsInto(chain: string, table: Table, name: TableName): RuleText[] {
  return builtinChains[name].flatMap((builtin) => leadingTo(chain, rulesOf(table, builtin)));
}

/** Jumps into a chain from the builtin chains which have words that we do not write: nothing of ours can take them out. */
export function oddJumps(chain: string, table: Table, names: OwnNames): RuleText[] {
  return jumpsInto(chain, table, names.name).filter((rule) => {
    return spell(rule, chain, names) === undefined;
  });
}

// A jump of ours may have words that nobody else's are let have.
function spell(rule: RuleText, chain: string, { placed }: OwnNames): RuleText | undefined {
  return placed.includes(rule) ? rule : respell(rule, chain);
}

function leadingTo(chain: string, rules: readonly RuleText[]): RuleText[] {
  return rules.filter((rule) => leadsTo(chain, rule));
}

// Most rules do not name the chain at all, and need not be read.
function leadsTo(chain: string, rule: RuleText): boolean {
  return rule.includes(chain) && targetOf(rule) === chain;
}

function append(rule: RuleText): Step {
  return { do: "append", rule };
}

function remove(rule: RuleText): Step {
  return { do: "delete", rule };
}

function deletions(chain: string, table: Table, names: OwnNames): Step[] {
  return jumpsInto(chain, table, names.name).flatMap((jump): Step[] => {
    const rule = spell(jump, chain, names);
    return rule === undefined ? [] : [remove(rule)];
  });
}

/** As often as it is there. */
function found(rule: RuleText, table: Table): RuleText[] {
  return rulesOf(table, chainOf(rule)).filter((one) => one === rule);
}

// At the head, not at the end: a rule of someone else's that stands before ours could take the traffic. The last of a builtin
// chain first, so that the first comes to stand ahead of it.
function insertions(placed: readonly Placed[]): Step[] {
  const hooks = [...new Set(placed.map(({ hook }) => hook))];
  return hooks.flatMap((hook) =>
    placed
      .filter((one) => one.hook === hook)
      .toReversed()
      .map(({ rule }): Step => ({ do: "insert", rule })),
  );
}
