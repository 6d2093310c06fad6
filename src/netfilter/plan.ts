// Plans the transaction that leads from what is there to what we want, or to nothing of ours. Only own chains, and jumps
// into them, are ever named: foreign rules are neither written nor moved. Nothing that was read is written back: a jump is
// taken out in our own spelling of it (respell.ts), or not at all.
import { respell } from "./respell.ts";
import { renderRestore } from "./restore.ts";
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

/**
 * From the table as observed to the ruleset; empty when it is there already, to the letter. Jumps that are not ours to
 * spell (see oddJumps) stay.
 */
export function plan(ruleset: Ruleset, table: Table): Transaction {
  const stale = ruleset.chains.filter((own) => !isFilled(own, table));
  const loose = ruleset.chains.filter((own) => !isLedInto(own, table));
  return [
    ...stale.map(({ name }): Step => ({ do: "reset-chain", chain: name })),
    ...stale.flatMap(({ rules }) => rules.map(append)),
    ...loose.flatMap((own) => deletions(own.name, table)),
    ...loose.map(insertJump),
  ];
}

/**
 * From the table as observed to one without the own chains and the jumps into them; empty when there are none. A chain
 * that a rule still leads into stays, empty, which lets all traffic pass.
 */
export function planRemoval(chains: readonly string[], table: Table): Transaction {
  const there = chains.filter((chain) => table.chains.has(chain));
  const free = there.filter((chain) => holdersOf(chain, table, chains).length === 0);
  const full = there.filter((chain) => free.includes(chain) || rulesOf(table, chain).length > 0);
  return [
    ...full.map((chain): Step => ({ do: "reset-chain", chain })),
    ...there.flatMap((chain) => deletions(chain, table)),
    ...free.map((chain): Step => ({ do: "delete-chain", chain })),
  ];
}

/** Rules that keep the kernel from letting go of a chain when planRemoval has done its work. */
export function holdersOf(chain: string, table: Table, own: readonly string[]): RuleText[] {
  return [...oddJumps(chain, table), ...foreignJumps(chain, table, own)];
}

/**
 * As much of a transaction as fits into so many bytes of text. Deletions that do not are left for the next one, planned
 * from what is there then, and with them the chains that they would set free.
 */
export function fitting(transaction: Transaction, longestBytes: number): Transaction {
  if (renderRestore(transaction).length <= longestBytes) return transaction;
  const kept = transaction.filter((step) => step.do !== "delete" && step.do !== "delete-chain");
  let left = longestBytes - renderRestore(kept).length;
  return transaction.filter((step) => {
    if (step.do === "delete-chain") return false;
    if (step.do !== "delete") return true;
    left -= step.rule.length + 1;
    return left >= 0;
  });
}

function isFilled(own: OwnChain, table: Table): boolean {
  const found = table.chains.get(own.name);
  return found?.length === own.rules.length && found.every((rule, i) => rule === own.rules[i]);
}

// One jump, spelt as ours, with nothing ahead that takes the traffic. Anything else is taken out and put in anew at
// the head, in the same commit: of two equal rules -D takes the first, so "delete the second" cannot be said.
function isLedInto(own: OwnChain, table: Table): boolean {
  const jumps = deletions(own.name, table);
  const rules = rulesOf(table, own.hook);
  const at = rules.indexOf(own.jump);
  return jumps.length === 1 && at !== -1 && shadowing(table, rules.slice(0, at)) === undefined;
}

const builtinChains = ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"];

/** All jumps into a chain from the builtin chains. */
export function jumpsInto(chain: string, table: Table): RuleText[] {
  return builtinChains.flatMap((builtin) => leadingTo(chain, rulesOf(table, builtin)));
}

/** Jumps into a chain from the builtin chains which have words that we do not write: nothing of ours can take them out. */
export function oddJumps(chain: string, table: Table): RuleText[] {
  return jumpsInto(chain, table).filter((rule) => respell(rule, chain) === undefined);
}

// A jump from someone else's chain is theirs.
function foreignJumps(chain: string, table: Table, own: readonly string[]): RuleText[] {
  return [...table.chains]
    .filter(([name]) => !builtinChains.includes(name) && !own.includes(name))
    .flatMap(([, rules]) => leadingTo(chain, rules));
}

// Most rules do not name the chain at all, and need not be read.
function leadingTo(chain: string, rules: readonly RuleText[]): RuleText[] {
  return rules.filter((rule) => rule.includes(chain) && targetOf(rule) === chain);
}

function append(rule: RuleText): Step {
  return { do: "append", rule };
}

function deletions(chain: string, table: Table): Step[] {
  return jumpsInto(chain, table).flatMap((found): Step[] => {
    const rule = respell(found, chain);
    return rule === undefined ? [] : [{ do: "delete", rule }];
  });
}

// At the head, not at the end: a rule of someone else's that stands before the jump could take the traffic.
function insertJump({ jump }: OwnChain): Step {
  return { do: "insert", rule: jump };
}
