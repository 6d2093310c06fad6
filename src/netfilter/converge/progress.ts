// One family on its way to its ruleset: what came of a try, and what to try next. Does nothing itself.
import type { Fault } from "../../fault.ts";
import { printable } from "../../text/printable.ts";
import { failedChain, readFailure, type ToolFailure } from "../iptables/failure.ts";
import type { Outcome } from "../iptables/job.ts";
import { holdsOwn, ownIn, ownOf, type Tables } from "../own.ts";
import { jumpsInto, oddJumps } from "../plan.ts";
import { loadable, renderRestore } from "../restore.ts";
import { versionIn } from "../save-header.ts";
import type { Ruleset, TableName } from "../table.ts";
import {
  type Commit,
  freshTransaction,
  holdsAny,
  isFresh,
  type Transaction,
  transactionTo,
} from "../transaction.ts";
import { committedIn, isOutdated, isUnclear, outdatedAdvice } from "./outdated.ts";
import { readTables, type Shown, shownIn } from "./readout.ts";

/** So many times the same, with nobody else at the table: no further try will do. */
const sameMax = 3;

/** One family on its way to its ruleset. */
export type Progress = {
  readonly ruleset: Ruleset;
  /** What is left to do; empty once the tables have been read back and are right, or are to be looked at first. */
  transaction: Transaction;
  failure: Failure | undefined;
  /** How often in a row the same text met the same refusal, and left the tables as they were. */
  same: number;
  /** The transaction was planned from what we saw. */
  looked: boolean;
  /** The tables that held nothing of ours when it was planned. */
  free: ReadonlySet<TableName>;
  /** Somebody else changed the tables while we were at it. */
  disturbed: boolean;
  /** The tables whose own chains and rules were made by us, just now, where there were none. */
  created: Set<TableName>;
  changed: boolean;
  /** Something of ours that was there before was written over. */
  isRewritten: boolean;
  /** Whether a text of ours was loaded is not known: its tool was ended, by the deadline or by somebody. */
  doubtful: boolean;
  unmasked: boolean;
  /** Of the tool that read the tables, as it says it. */
  version: string | undefined;
  /** It is left out: why its tools refused, or that IPv6 is not possible in the netns. */
  left: Fault | "absent" | undefined;
};

export type Failure = ToolFailure & {
  readonly program: string;
  readonly chain: string;
  readonly isUnverifiable?: true;
};

/**
 * Before the first try, which does not look where the text itself refuses to meet anything of ours (-N): on a fresh netns that
 * is all it takes. Rules that stand in builtin chains of a table without chains of ours could be doubled: there, it looks.
 */
export function begin(ruleset: Ruleset): Progress {
  const fresh = freshTransaction(ruleset);
  const isWhole = ruleset.tables.every(({ stale }) => stale === undefined);
  const isSafe = isWhole && fresh.every(isFresh);
  return {
    ruleset,
    transaction: isSafe ? fresh : [],
    failure: undefined,
    same: 0,
    looked: false,
    free: new Set(isSafe ? ruleset.tables.map(({ name }) => name) : []),
    disturbed: false,
    created: new Set(),
    changed: false,
    isRewritten: false,
    doubtful: false,
    unmasked: false,
    version: undefined,
    left: undefined,
  };
}

/** Takes in what came of a try, with the tables as they were read after it. */
export function advance(progress: Progress, outcome: Outcome): void {
  const { ruleset, transaction, failure: before, looked } = progress;
  const shown = shownIn(readTables(outcome), ruleset.tables);
  const loaded = committedIn(transaction, outcome);
  const refused = transaction[loaded.length];
  progress.unmasked ||= outcome.unmasked === true;
  progress.version = versionIn(outcome.saved) ?? progress.version;
  progress.doubtful ||= isUnclear(transaction, outcome);
  takeLoaded(progress, loaded);
  if (!(shown instanceof Error)) {
    planFrom(progress, shown.tables);
  } else if (refused === undefined || isFresh(refused)) {
    // Loaded, or met something of ours, but not seen: the next try only looks.
    progress.transaction = [];
  }
  const result = { outcome, shown, refused };
  progress.failure = failureOf(ruleset, result) ?? obstacleTo(progress, result);
  if (progress.failure === undefined) {
    // Loaded, and not there when we looked.
    progress.disturbed ||=
      transaction.length > 0 && outcome.restoreStatus === 0 && progress.transaction.length > 0;
    progress.same = 0;
    return;
  }
  const unchanged = renderRestore(transaction) === renderRestore(progress.transaction);
  progress.disturbed ||= (looked && !unchanged) || isOutdated(ruleset, outcome);
  progress.same = progress.failure.said === before?.said && unchanged ? progress.same + 1 : 1;
}

/** Takes in which commits were loaded. */
export function takeLoaded(progress: Progress, loaded: Transaction): void {
  for (const { table } of loaded) {
    progress.changed = true;
    if (progress.free.has(table)) progress.created.add(table);
    progress.isRewritten ||= !progress.created.has(table);
  }
}

/** True when nothing of ours was there before, in any table. */
export function isAllCreated({ ruleset, created, changed }: Progress): boolean {
  return changed && ruleset.tables.every(({ name }) => created.has(name));
}

// What is made in a table where nothing of ours is, by a text that refuses to meet any, is known to be of our making.
function planFrom(progress: Progress, tables: Tables): void {
  const { ruleset } = progress;
  const free = ruleset.tables.filter((own) => !holdsOwn(ownIn(own), tables[own.name]));
  progress.looked = true;
  progress.free = new Set(free.map(({ name }) => name));
  progress.transaction = loadable(transactionTo(ruleset, tables));
}

/** What came of a try. */
type Result = {
  readonly outcome: Outcome;
  readonly shown: Shown | Error;
  /** The commit that was not loaded. */
  readonly refused: Commit | undefined;
};

// A refusal because our chains are there already is what a text for a fresh table is for.
function failureOf(ruleset: Ruleset, { outcome, shown, refused }: Result): Failure | undefined {
  const { restoreStatus, saveStatus, stderr } = outcome;
  const { restore, save } = outcome.job.tools;
  const own = ownOf([ruleset]);
  const chain = failedChain(
    stderr,
    own.flatMap(({ chains }) => chains),
  );
  const where = { program: restoreStatus === 0 ? save : restore, chain };
  if (!(shown instanceof Error) && shown.unverifiable !== undefined) {
    return unverifiable(shown.unverifiable, restore, namesOf(ruleset));
  }
  if (saveStatus !== 0) return { ...readFailure(restoreStatus || saveStatus, stderr), ...where };
  if (shown instanceof Error) {
    return { kind: "unknown", said: shown.message, advice: "", program: save, chain: "" };
  }
  if (restoreStatus === 0) return undefined;
  const met = own.filter(({ name }) => name === refused?.table);
  if (refused !== undefined && isFresh(refused) && holdsAny(met, shown.tables)) return undefined;
  const failure = { ...readFailure(restoreStatus, stderr, outcome.job.restore), ...where };
  return isOutdated(ruleset, outcome)
    ? { ...failure, kind: "transient", advice: outdatedAdvice }
    : failure;
}

function unverifiable(said: string, program: string, tables: string): Failure {
  const advice = said.startsWith("its text ") ? hiddenAdvice(tables) : nativeAdvice(tables);
  return { kind: "unsupported", said, advice, program, chain: "", isUnverifiable: true };
}

/** Its tables, as sentences name them. */
function namesOf({ tables }: Ruleset): string {
  return `the ${tables.map(({ name }) => name).join(" or ")} table`;
}

function nativeAdvice(tables: string): string {
  return `rules written by nft itself stand in ${tables}, so iptables cannot show it; remove them or use another table`;
}

function hiddenAdvice(tables: string): string {
  return `whether all traffic would be redirected cannot be proven: somebody wrote rules in this pod's ${tables.slice(4)}; remove them`;
}

// Jumps into our chains that stand in the way of the ruleset, though nothing was refused.
function obstacleTo(
  { ruleset, transaction }: Progress,
  { outcome, shown }: Result,
): Failure | undefined {
  if (shown instanceof Error) return undefined;
  const { tables } = shown;
  const own = ownOf([ruleset]);
  const each = own.flatMap((names) => names.chains.map((chain) => ({ names, chain })));
  const where = { program: outcome.job.tools.restore, chain: "" };
  const odds = each.flatMap(({ names, chain }) => oddJumps(chain, tables[names.name], names));
  const [odd] = transaction.length > 0 ? [] : odds;
  if (odd !== undefined) {
    const said = `a rule of someone else's leads into our chain: ${printable(odd)}`;
    const advice = "it has words that we do not write; remove it by hand";
    return { kind: "unsupported", said, advice, ...where, isUnverifiable: true };
  }
  const isWhole = stepsIn(transactionTo(ruleset, tables)) === stepsIn(transaction);
  if (!holdsAny(own, tables) || isWhole) return undefined;
  const count = each.flatMap(({ names: { name }, chain }) => {
    return jumpsInto(chain, tables[name], name);
  }).length;
  const said = `${count} rules lead into our chains, more than can be taken out at once`;
  const advice = "another program keeps adding them; remove them by hand";
  return { kind: "transient", said, advice, ...where };
}

function stepsIn(transaction: Transaction): number {
  return transaction.reduce((count, { steps }) => count + steps.length, 0);
}

/** Read back, and right; or left out. Where nothing was read yet, nothing is right. */
export function isDone({ transaction, failure, left, looked }: Progress): boolean {
  return left !== undefined || (looked && transaction.length === 0 && failure === undefined);
}

/** No further try will do. */
export function isRefused({ failure, same, disturbed }: Progress): boolean {
  if (failure?.kind === "unsupported") return true;
  return failure?.kind === "unknown" && same >= sameMax && !disturbed;
}
