// Plans the transaction that leads from what is there to what we want, or to nothing of ours. Only own chains, and jumps
// into them, are ever named: foreign rules are neither written nor moved.
import { targetOf } from "./rule.ts";
import { shadowing } from "./shadow.ts";
import { type OwnChain, type Ruleset, type RuleText, rulesOf, type Table } from "./table.ts";

/** One line of a transaction, in restore's terms. */
export type Step =
  /** -N: makes the chain, and refuses the whole transaction where it is there already. */
  | { readonly do: "create-chain"; readonly chain: string }
  /** `:CHAIN - [0:0]`: makes the chain, or empties it where it is there already. */
  | { readonly do: "reset-chain"; readonly chain: string }
  | { readonly do: "append"; readonly rule: RuleText }
  /** -I at the head of the rule's chain. */
  | { readonly do: "insert"; readonly rule: RuleText }
  /** -D: refuses the whole transaction where no such rule is. */
  | { readonly do: "delete"; readonly rule: RuleText }
  | { readonly do: "delete-chain"; readonly chain: string };

/** Steps that the kernel takes as one: all or none. No steps: nothing to do. */
export type Transaction = readonly Step[];

/**
 * For a netns that should hold nothing of ours: one restore without looking first. Where a chain of ours is there
 * already nothing happens at all (-N), and the state can be looked at in peace.
 */
export function planFresh(ruleset: Ruleset): Transaction {
  return [
    ...ruleset.chains.map(({ name }): Step => ({ do: "create-chain", chain: name })),
    ...ruleset.chains.flatMap(({ rules }) => rules.map(append)),
    ...ruleset.chains.map(insertJump),
  ];
}

/** From the table as observed to the ruleset; empty when it is there already, to the letter. */
export function plan(ruleset: Ruleset, table: Table): Transaction {
  const stale = ruleset.chains.filter((own) => !isFilled(own, table));
  const loose = ruleset.chains.filter((own) => !isLedInto(own, table));
  return [
    ...stale.map(({ name }): Step => ({ do: "reset-chain", chain: name })),
    ...stale.flatMap(({ rules }) => rules.map(append)),
    ...loose.flatMap((own) => jumpsInto(own.name, table).map(remove)),
    ...loose.map(insertJump),
  ];
}

/** From the table as observed to one without the own chains and the jumps into them; empty when there are none. */
export function planRemoval(chains: readonly string[], table: Table): Transaction {
  const there = chains.filter((chain) => table.chains.has(chain));
  const free = there.filter((chain) => !isReferredTo(chain, table, chains));
  return [
    ...there.map((chain): Step => ({ do: "reset-chain", chain })),
    ...there.flatMap((chain) => jumpsInto(chain, table).map(remove)),
    ...free.map((chain): Step => ({ do: "delete-chain", chain })),
  ];
}

function isFilled(own: OwnChain, table: Table): boolean {
  const found = table.chains.get(own.name);
  return found?.length === own.rules.length && found.every((rule, i) => rule === own.rules[i]);
}

// One jump, spelt as ours, with nothing ahead that takes the traffic. Anything else is taken out and put in anew at
// the head, in the same commit: of two equal rules -D takes the first, so "delete the second" cannot be said.
function isLedInto(own: OwnChain, table: Table): boolean {
  const jumps = jumpsInto(own.name, table);
  const rules = rulesOf(table, own.hook);
  const at = rules.indexOf(own.jump);
  return jumps.length === 1 && at !== -1 && shadowing(table, rules.slice(0, at)) === undefined;
}

const builtinChains = ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"];

/** All jumps into a chain from the builtin chains. */
export function jumpsInto(chain: string, table: Table): RuleText[] {
  return builtinChains.flatMap((builtin) =>
    rulesOf(table, builtin).filter((rule) => targetOf(rule) === chain),
  );
}

// A jump from someone else's chain is theirs. The kernel does not let go of a chain that is referred to, so ours then
// stays behind, empty, which lets all traffic pass.
function isReferredTo(chain: string, table: Table, own: readonly string[]): boolean {
  const foreign = [...table.chains].filter(
    ([name]) => !builtinChains.includes(name) && !own.includes(name),
  );
  return foreign.some(([, rules]) => rules.some((rule) => targetOf(rule) === chain));
}

function append(rule: RuleText): Step {
  return { do: "append", rule };
}

function remove(rule: RuleText): Step {
  return { do: "delete", rule };
}

// At the head, not at the end: a rule of someone else's that stands before the jump could take the traffic.
function insertJump({ jump }: OwnChain): Step {
  return { do: "insert", rule: jump };
}
