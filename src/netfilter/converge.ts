// Brings a netns to its rulesets and proves it: write, read back, compare; from whatever state, as often as it takes.
// Serves ADD and repair. Edge: works through the client.
import { CniError, errorCode } from "../cni/error.ts";
import { type BackendChoice, toolsFor } from "./choice.ts";
import {
  BatchError,
  type Client,
  type Job,
  longestRestoreBytes,
  type Outcome,
  type Place,
} from "./client.ts";
import { failedChain, readFailure, type ToolFailure } from "./failure.ts";
import { plan, planFresh, planRemoval, type Transaction } from "./plan.ts";
import { renderRestore } from "./restore.ts";
import { parseSave, SaveSyntaxError } from "./save.ts";
import { type Family, holdsAny, type Ruleset, type Table } from "./table.ts";

/** Where, with what, and in what time work is done. */
export type Session = {
  readonly client: Client;
  readonly place: Place;
  readonly choice: BackendChoice;
  /** Milliseconds left for everything together. */
  readonly remainingMs: () => number;
  readonly sleep: (ms: number) => Promise<void>;
};

/** Tries before giving up on a table that others keep changing. */
const triesMax = 8;

/** So many times the same, with nobody else at the table: no further try will do. */
const sameMax = 3;

/** Kept back for taking out again what a call that runs out of time has made. */
const takeBackMs = 2_000;

/** The table cannot be shown, so nothing about it can be proven: not a reason to write elsewhere without looking. */
export class UnverifiableError extends CniError {}

/** One family on its way to its ruleset. */
type Progress = {
  readonly ruleset: Ruleset;
  /** What is left to do; empty once the table has been read back and is right. */
  transaction: Transaction;
  failure: Failure | undefined;
  /** How often in a row the same text met the same refusal, and left the table as it was. */
  same: number;
  /** The transaction was planned from what we saw. */
  looked: boolean;
  /** Somebody else changed the table while we were at it. */
  disturbed: boolean;
  /** The own chains were made by us, just now, where there were none. */
  created: boolean;
  changed: boolean;
};

type Failure = ToolFailure & { readonly chain: string; readonly isUnverifiable?: true };

/** What converging did. */
export type Converged = {
  /** The families that were written to; none when all was right already. */
  readonly written: readonly Family[];
  /** Those that held nothing of ours before. */
  readonly created: readonly Family[];
  /** What came of the jobs that were only to look. */
  readonly looked: readonly Outcome[];
};

/**
 * Ends with every ruleset in place, read back and equal, or throws with nothing left half-way: families that held
 * nothing of ours before hold nothing again. `looks` are read-only jobs for the same child.
 * @throws CniError 11 when others kept interfering or the time ran out, 101 when the tools refused.
 */
export async function converge(
  session: Session,
  rulesets: readonly Ruleset[],
  looks: readonly Job[] = [],
): Promise<Converged> {
  // The first try does not look: on a fresh netns that is all it takes, and elsewhere (-N) nothing happens but the look.
  const all = rulesets.map((ruleset): Progress => {
    const transaction = planFresh(ruleset);
    return {
      ruleset,
      transaction,
      failure: undefined,
      same: 0,
      looked: false,
      disturbed: false,
      created: false,
      changed: false,
    };
  });
  let tries = 1;
  try {
    const looked = await tryOnce(session, all, looks);
    for (; !all.every(isDone); tries++) {
      if (tries === triesMax || session.remainingMs() < 100) throw gaveUp(session, all, tries);
      if (tries > 1) await session.sleep(jitterMs(tries));
      await tryOnce(session, all, []);
    }
    const families = (some: readonly Progress[]) => some.map(({ ruleset }) => ruleset.family);
    return {
      written: families(all.filter(({ changed }) => changed)),
      created: families(all.filter(({ created }) => created)),
      looked,
    };
  } catch (error) {
    await takeBack(session, all);
    // Out of time: what kept us before says more than where we were when it ran out.
    const isKnown = all.some(({ failure }) => failure !== undefined);
    throw error instanceof BatchError && isKnown ? gaveUp(session, all, tries) : error;
  }
}

async function tryOnce(
  session: Session,
  all: readonly Progress[],
  looks: readonly Job[],
): Promise<Outcome[]> {
  const open = all.filter((progress) => !isDone(progress));
  const jobs = open.map(({ ruleset, transaction }) =>
    restoreJob(session.choice, ruleset.family, transaction),
  );
  const outcomes = await runAll(session, open, [...jobs, ...looks]);
  for (const [i, progress] of open.entries()) {
    const outcome = outcomes[i];
    if (outcome !== undefined) advance(progress, outcome);
  }
  const refused = open.find(isRefused);
  if (refused !== undefined) throw rejected(session.choice, refused);
  return outcomes.slice(open.length);
}

async function runAll(
  session: Session,
  open: readonly Progress[],
  jobs: readonly Job[],
): Promise<Outcome[]> {
  const left = session.remainingMs();
  try {
    return await session.client(session.place, jobs, left - Math.min(takeBackMs, left / 4));
  } catch (error) {
    const restored = error instanceof BatchError ? error.restored : [];
    for (const progress of open) {
      const isRestored = restored.some(({ family }) => family === progress.ruleset.family);
      progress.created ||= isRestored && isFresh(progress.transaction);
    }
    throw error;
  }
}

function advance(progress: Progress, outcome: Outcome): void {
  const { transaction, failure: before, looked } = progress;
  const fresh = isFresh(transaction);
  if (outcome.restoreStatus === 0) {
    progress.changed = true;
    progress.created ||= fresh;
  }
  const table = readTable(outcome);
  if (!(table instanceof Error)) {
    progress.transaction = planFor(progress.ruleset, table);
    progress.looked = true;
  }
  progress.failure = failureOf(outcome, table, fresh);
  if (progress.failure === undefined) {
    // Loaded, and not there when we looked.
    progress.disturbed ||= outcome.restoreStatus === 0 && progress.transaction.length > 0;
    progress.same = 0;
    return;
  }
  const unchanged = renderRestore(transaction) === renderRestore(progress.transaction);
  progress.disturbed ||= looked && !unchanged;
  progress.same = progress.failure.said === before?.said && unchanged ? progress.same + 1 : 1;
}

// Where nothing of ours is, the text that refuses to meet anything of ours: what it makes is known to be of our making.
function planFor(ruleset: Ruleset, table: Table): Transaction {
  const names = ruleset.chains.map(({ name }) => name);
  return holdsAny(table, names) ? plan(ruleset, table) : planFresh(ruleset);
}

function isFresh(transaction: Transaction): boolean {
  return transaction[0]?.do === "create-chain";
}

// A refusal of the first text because our chains are there already is what that text is for.
function failureOf(outcome: Outcome, table: Table | Error, fresh: boolean): Failure | undefined {
  const { restoreStatus, saveStatus, stderr } = outcome;
  const chain = failedChain(stderr);
  if (saveStatus !== 0) return { ...readFailure(restoreStatus || saveStatus, stderr), chain };
  if (table instanceof Error) return { kind: "unknown", said: table.message, advice: "", chain };
  if (table.unverifiable !== undefined) {
    const said = table.unverifiable;
    return { kind: "unsupported", said, advice: nativeAdvice, chain, isUnverifiable: true };
  }
  if (restoreStatus === 0) return undefined;
  if (fresh && holdsAny(table, ownNames(outcome.job.restore))) return undefined;
  return { ...readFailure(restoreStatus, stderr), chain };
}

const nativeAdvice =
  "rules written by nft itself stand in the nat table, so iptables cannot show it; remove them or use another table";

function ownNames(restore: string): string[] {
  return [...restore.matchAll(/^-N (\S+)$/gm)].map(([, name]) => name ?? "");
}

/** The table that a job read, or why it could not be read. */
export function readTable(outcome: Outcome): Table | Error {
  if (outcome.saveStatus !== 0) {
    return new Error(readFailure(outcome.saveStatus, outcome.stderr).said);
  }
  try {
    return parseSave(outcome.saved);
  } catch (error) {
    if (error instanceof SaveSyntaxError) return error;
    throw error;
  }
}

function isDone({ transaction, failure }: Progress): boolean {
  return transaction.length === 0 && failure === undefined;
}

function isRefused({ failure, same, disturbed }: Progress): boolean {
  if (failure?.kind === "unsupported") return true;
  return failure?.kind === "unknown" && same >= sameMax && !disturbed;
}

/** A job that writes a transaction and reads the table back. */
export function restoreJob(choice: BackendChoice, family: Family, transaction: Transaction): Job {
  const restore = transaction.length === 0 ? "" : renderRestore(transaction);
  if (Buffer.byteLength(restore) > longestRestoreBytes) {
    throw new CniError(
      errorCode.invalidConf,
      `the ${family} rules are too long to load: ${Buffer.byteLength(restore)} bytes, at most ${longestRestoreBytes}`,
      { details: "exclude ranges of ports instead of thousands of single ports" },
    );
  }
  return { family, backend: choice.backend, tools: toolsFor(choice, family), restore };
}

// Exactly what was made is taken out again; where somebody changed it meanwhile the kernel refuses, and the netns is
// about to be torn down by the runtime anyway.
async function takeBack(session: Session, all: readonly Progress[]): Promise<void> {
  const jobs = all
    .filter(({ created }) => created)
    .map(({ ruleset }) => {
      const names = ruleset.chains.map(({ name }) => name);
      return restoreJob(session.choice, ruleset.family, planRemoval(names, asTable(ruleset)));
    });
  if (jobs.length === 0) return;
  try {
    await session.client(session.place, jobs, Math.max(session.remainingMs(), 2_000));
  } catch {
    // The error that brought us here says more than that cleaning up failed too.
  }
}

function asTable(ruleset: Ruleset): Table {
  const own = ruleset.chains.map(({ name, rules }) => [name, rules] as const);
  const hooks = ruleset.chains.map(({ hook, jump }) => [hook, [jump]] as const);
  return { chains: new Map([...own, ...hooks]) };
}

function rejected(choice: BackendChoice, progress: Progress): CniError {
  const { failure } = progress;
  const kind = failure?.isUnverifiable === true ? UnverifiableError : CniError;
  return new kind(
    errorCode.restoreRejected,
    `${placeOf(choice, progress)} failed: ${failure?.said ?? ""}`,
    { details: failure?.advice || "see the tool's message; nothing of ours is left half-way" },
  );
}

function gaveUp(session: Session, all: readonly Progress[], tries: number): CniError {
  const open = all.filter((progress) => !isDone(progress));
  const places = open.map((progress) => placeOf(session.choice, progress)).join(" and ");
  const failure = open.find((progress) => progress.failure !== undefined)?.failure;
  if (failure === undefined) {
    return new CniError(
      errorCode.tryAgainLater,
      `${places}: the rules did not stay as written in ${tries} tries`,
      { details: "another program keeps changing the rules in this netns; find and stop it" },
    );
  }
  return new CniError(
    errorCode.tryAgainLater,
    `${places} failed in ${tries} tries: ${failure.said}`,
    { details: failure.advice || "another program keeps changing the rules in this netns" },
  );
}

// Which program, on what: `/usr/sbin/iptables-nft-restore (nft, ipv4, table nat, chain OUTPUT)`.
function placeOf(choice: BackendChoice, { ruleset, failure }: Progress): string {
  const { family } = ruleset;
  const chain = failure === undefined || failure.chain === "" ? "" : `, chain ${failure.chain}`;
  return `${toolsFor(choice, family).restore} (${choice.backend}, ${family}, table nat${chain})`;
}

// Grows with the tries; random, so that two who are in each other's way do not meet again.
function jitterMs(tries: number): number {
  return Math.random() * 40 * 2 ** Math.min(tries, 4);
}
