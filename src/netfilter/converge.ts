// Brings a netns to its rulesets and proves it: write, read back, compare; from whatever state, as often as it takes.
// Serves ADD and repair. Edge: works through the client.
import { CniError, errorCode } from "../cni/error.ts";
import { type BackendChoice, toolsFor } from "./choice.ts";
import { type Client, type Job, longestRestoreBytes, type Outcome, type Place } from "./client.ts";
import { readFailure, type ToolFailure } from "./failure.ts";
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

/** One family on its way to its ruleset. */
type Progress = {
  readonly ruleset: Ruleset;
  /** What is left to do; empty once the table has been read back and is right. */
  transaction: Transaction;
  failure: ToolFailure | undefined;
  /** The same refusal to the same text as the time before: no try will do. */
  stuck: boolean;
  /** The own chains were made by us, just now, where there were none. */
  created: boolean;
  changed: boolean;
};

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
      stuck: false,
      created: false,
      changed: false,
    };
  });
  try {
    const looked = await tryOnce(session, all, looks);
    for (let tries = 2; !all.every(isDone); tries++) {
      if (tries > triesMax || session.remainingMs() < 100) throw gaveUp(session, all, tries - 1);
      if (tries > 2) await session.sleep(jitterMs(tries));
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
    throw error;
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
  const outcomes = await session.client(session.place, [...jobs, ...looks], session.remainingMs());
  for (const [i, progress] of open.entries()) {
    const outcome = outcomes[i];
    if (outcome !== undefined) advance(progress, outcome);
  }
  const refused = open.find(isRefused);
  if (refused !== undefined) throw rejected(session.choice, refused);
  return outcomes.slice(open.length);
}

function advance(progress: Progress, outcome: Outcome): void {
  const fresh = progress.transaction[0]?.do === "create-chain";
  const before = progress.failure;
  if (outcome.restoreStatus === 0) {
    progress.changed = true;
    progress.created ||= fresh;
  }
  const table = readTable(outcome);
  if (!(table instanceof Error)) progress.transaction = plan(progress.ruleset, table);
  progress.failure = failureOf(outcome, table, fresh);
  progress.stuck = before !== undefined && progress.failure?.said === before.said;
}

// A refusal of the first text because our chains are there already is what that text is for.
function failureOf(
  outcome: Outcome,
  table: Table | Error,
  fresh: boolean,
): ToolFailure | undefined {
  if (table instanceof Error) return { kind: "unknown", said: table.message, advice: "" };
  if (table.unverifiable !== undefined) {
    return { kind: "unsupported", said: table.unverifiable, advice: nativeAdvice };
  }
  if (outcome.saveStatus !== 0) return readFailure(outcome.saveStatus, outcome.stderr);
  if (outcome.restoreStatus === 0) return undefined;
  if (fresh && holdsAny(table, ownNames(outcome.job.restore))) return undefined;
  return readFailure(outcome.restoreStatus, outcome.stderr);
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

function isRefused({ failure, stuck }: Progress): boolean {
  return failure?.kind === "unsupported" || (failure?.kind === "unknown" && stuck);
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

function rejected(choice: BackendChoice, { ruleset, failure }: Progress): CniError {
  const tool = toolsFor(choice, ruleset.family).restore;
  return new CniError(
    errorCode.restoreRejected,
    `${tool} (${choice.backend}, ${ruleset.family}, table nat) failed: ${failure?.said ?? ""}`,
    { details: failure?.advice || "see the tool's message; nothing of ours is left half-way" },
  );
}

function gaveUp(session: Session, all: readonly Progress[], tries: number): CniError {
  const open = all.filter((progress) => !isDone(progress));
  const families = open.map(({ ruleset }) => ruleset.family).join(" and ");
  const said = open.flatMap(({ failure }) => (failure === undefined ? [] : [failure.said]))[0];
  return new CniError(
    errorCode.tryAgainLater,
    `the ${families} nat table did not hold still in ${tries} tries (${session.choice.backend})`,
    { details: said ?? "another program keeps changing the rules in this netns; find and stop it" },
  );
}

// Grows with the tries; random, so that two who are in each other's way do not meet again.
function jitterMs(tries: number): number {
  return Math.random() * 20 * 2 ** Math.min(tries, 5);
}
