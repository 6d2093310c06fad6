// Plans the steps that lead one table from what is there to what we want, or to nothing of ours. Only own chains, rules of
// ours and jumps into own chains are ever named: foreign rules are neither written nor moved. Nothing that was read is written
// back: a jump is taken out in our own spelling of it (respell.ts), or not at all. transaction.ts puts the tables together.
import { actingIn, ownIn } from "./own.ts";
import { respell } from "./respell.ts";
import { targetOf } from "./rule.ts";
import { shadowing } from "./shadow.ts";
import {
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
 * letter. Jumps that are not ours to spell (see oddJumps) stay.
 */
export function plan(own: OwnTable, table: Table, traffic: Traffic): Step[] {
  const { chains, placed, stale } = own;
  const unfilled = chains.filter((chain) => !isFilled(chain, table));
  const loose = looseIn(own, table, traffic);
  const led = placed.map(({ rule }) => targetOf(rule));
  const unled = chains.map(({ name }) => name).filter((name) => !led.includes(name));
  return [
    ...unfilled.map(({ name }): Step => ({ do: "reset-chain", chain: name })),
    ...unfilled.flatMap(({ rules }) => rules.map(append)),
    ...loose.flatMap((one) => deletionsOf(one, own, table)),
    ...unled.flatMap((chain) => deletions(chain, table, own.name)),
    ...insertions(loose),
    ...(stale === undefined ? [] : planRemoval(stale, table)),
  ];
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
    ...there.flatMap((chain) => deletions(chain, table, names.name)),
    ...actingIn(names).flatMap((rule) => found(rule, table).map(remove)),
    ...free.map((chain): Step => ({ do: "delete-chain", chain })),
  ];
}

/** Rules that keep the kernel from letting go of a chain when planRemoval has done its work. */
export function holdersOf(chain: string, table: Table, { name, chains }: OwnNames): RuleText[] {
  const builtin: readonly string[] = builtinChains[name];
  // A jump from someone else's chain is theirs.
  const foreign = [...table.chains]
    .filter(([other]) => !builtin.includes(other) && !chains.includes(other))
    .flatMap(([, rules]) => leadingTo(chain, rules));
  return [...oddJumps(chain, table, name), ...foreign];
}

function isFilled(own: OwnChain, table: Table): boolean {
  const rules = table.chains.get(own.name);
  return rules?.length === own.rules.length && rules.every((rule, i) => rule === own.rules[i]);
}

// All of a builtin chain, or none: of several the order counts, and they go back to the head together.
function looseIn(own: OwnTable, table: Table, traffic: Traffic): Placed[] {
  const hooks = [...new Set(own.placed.map(({ hook }) => hook))];
  return hooks.flatMap((hook) => {
    const here = own.placed.filter((one) => one.hook === hook);
    return areInPlace(here, own, { table, traffic }) ? [] : here;
  });
}

type Found = { readonly table: Table; readonly traffic: Traffic };

// Each once, spelt as ours, in our order, with nothing ahead that takes the traffic. Anything else is taken out and put in
// anew at the head, in the same commit: of two equal rules -D takes the first, so "delete the second" cannot be said.
function areInPlace(here: readonly Placed[], own: OwnTable, { table, traffic }: Found): boolean {
  const rules = rulesOf(table, here[0]?.hook ?? "");
  const texts = here.map(({ rule }) => rule);
  const at = texts.map((rule) => rules.indexOf(rule));
  const isInOrder = at.every((position, i) => position > (at[i - 1] ?? -1));
  const isOnce = here.every((one) => deletionsOf(one, own, table).length === 1);
  const ahead = rules.slice(0, at.at(-1)).filter((rule) => !texts.includes(rule));
  return isInOrder && isOnce && shadowing(table, ahead, traffic) === undefined;
}

/** All jumps into a chain from the builtin chains of a table of this name. */
export function jumpsInto(chain: string, table: Table, name: TableName): RuleText[] {
  return builtinChains[name].flatMap((builtin) => leadingTo(chain, rulesOf(table, builtin)));
}

/** Jumps into a chain from the builtin chains which have words that we do not write: nothing of ours can take them out. */
export function oddJumps(chain: string, table: Table, name: TableName): RuleText[] {
  return jumpsInto(chain, table, name).filter((rule) => respell(rule, chain) === undefined);
}

// Most rules do not name the chain at all, and need not be read.
function leadingTo(chain: string, rules: readonly RuleText[]): RuleText[] {
  return rules.filter((rule) => rule.includes(chain) && targetOf(rule) === chain);
}

function append(rule: RuleText): Step {
  return { do: "append", rule };
}

function remove(rule: RuleText): Step {
  return { do: "delete", rule };
}

// A jump goes in all its forms; a rule that acts by itself only as we spell it.
function deletionsOf({ rule }: Placed, own: OwnTable, table: Table): Step[] {
  const target = targetOf(rule);
  const isJump = ownIn(own).chains.includes(target);
  return isJump ? deletions(target, table, own.name) : found(rule, table).map(remove);
}

function deletions(chain: string, table: Table, name: TableName): Step[] {
  return jumpsInto(chain, table, name).flatMap((jump): Step[] => {
    const rule = respell(jump, chain);
    return rule === undefined ? [] : [remove(rule)];
  });
}

/** As often as it is there. */
function found(rule: RuleText, table: Table): RuleText[] {
  return rulesOf(table, rule.split(" ", 2)[1] ?? "").filter((one) => one === rule);
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
