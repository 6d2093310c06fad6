// Puts the steps of tables together into what one restore loads: a commit for each table, in an order in which a death
// between two commits lets no traffic pass by. Pure.
//
// A table is one commit: the kernel takes all of it or nothing. Of several tables
// - those that add come first, in the order in which packets come to them: what a rule of nat needs in raw is there then;
// - those that only take away come last, and in the opposite order: what captured before goes when the new capture is there,
//   and what it needed in raw goes after it.
import { holdsOwn, type Own, type Tables } from "./own.ts";
import { plan, planFresh, planRemoval, type Step } from "./plan.ts";
import { type Ruleset, type TableName, tableNames } from "./table.ts";

/** The steps of one table, which the kernel takes as one: all or none. */
export type Commit = { readonly table: TableName; readonly steps: readonly Step[] };

/** Commits in their order, none of them empty. No commits: nothing to do. */
export type Transaction = readonly Commit[];

/**
 * For a netns that should hold nothing of ours: one restore without looking first. Where a chain of ours is there already its
 * table refuses, and the state can be looked at in peace.
 */
export function freshTransaction({ tables }: Ruleset): Transaction {
  return inOrder(tables.map((own) => ({ table: own.name, steps: planFresh(own) })));
}

/** From the tables as observed to the ruleset; empty when all is there already, to the letter. */
export function transactionTo({ tables, traffic }: Ruleset, found: Tables): Transaction {
  return inOrder(
    tables.map((own) => ({ table: own.name, steps: plan(own, found[own.name], traffic) })),
  );
}

/** From the tables as observed to tables without what is ours; empty when there is none. */
export function removalOf(own: Own, found: Tables): Transaction {
  return inOrder(
    own.map((names) => ({ table: names.name, steps: planRemoval(names, found[names.name]) })),
  );
}

/** True when one of the tables holds something of ours. */
export function holdsAny(own: Own, found: Tables): boolean {
  return own.some((names) => holdsOwn(names, found[names.name]));
}

/** The text that refuses to meet anything of ours: each of its tables begins with a chain that is made. */
export function isFresh(transaction: Transaction): boolean {
  return (
    transaction.length > 0 && transaction.every(({ steps }) => steps[0]?.do === "create-chain")
  );
}

function inOrder(commits: readonly Commit[]): Transaction {
  const inTurn = tableNames.flatMap((name) =>
    commits.filter(({ table, steps }) => table === name && steps.length > 0),
  );
  const isAdding = ({ steps }: Commit) => steps.some(adds);
  return [...inTurn.filter(isAdding), ...inTurn.filter((commit) => !isAdding(commit)).toReversed()];
}

function adds(step: Step): boolean {
  return step.do === "create-chain" || step.do === "append" || step.do === "insert";
}

/**
 * As much of a transaction as fits, where `sizeOf` says how long it is. Deletions that do not fit are left for the next one,
 * planned from what is there then, and with them the chains that they would set free.
 */
export function fitting(transaction: Transaction, longest: number, sizeOf: SizeOf): Transaction {
  if (sizeOf(transaction) <= longest) return transaction;
  let left = longest - sizeOf(withSteps(transaction, (step) => !isDeletion(step)));
  const kept = withSteps(transaction, (step) => {
    if (step.do === "delete-chain") return false;
    if (step.do !== "delete") return true;
    left -= step.rule.length + 1;
    return left >= 0;
  });
  return kept.filter(({ steps }) => steps.length > 0);
}

type SizeOf = (transaction: Transaction) => number;

function isDeletion(step: Step): boolean {
  return step.do === "delete" || step.do === "delete-chain";
}

function withSteps(transaction: Transaction, isKept: (step: Step) => boolean): Commit[] {
  return transaction.map(({ table, steps }) => ({ table, steps: steps.filter(isKept) }));
}
