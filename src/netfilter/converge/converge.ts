// Brings a netns to its rulesets and proves it: write, read back, compare; from whatever state, as often as it takes.
// Serves ADD and repair. Edge: works through the client.
import { CniError, errorCode } from "../../cni/error.ts";
import { type BackendChoice, toolsFor } from "../../node/choice.ts";
import { BatchError, type Job, type Outcome } from "../iptables/client.ts";
import { readFailure } from "../iptables/failure.ts";
import type { Presence } from "../iptables/presence.ts";
import { planRemoval, type Transaction } from "../plan.ts";
import { longestRestoreBytes, renderRestore } from "../restore.ts";
import { parseTables, SaveSyntaxError, type Tables } from "../save.ts";
import {
  emptyTable,
  type Family,
  holdsAny,
  type Ruleset,
  type Table,
  type TableName,
} from "../table.ts";
import {
  giveUp,
  type Left,
  leaveUnequipped,
  mayBeAbsent,
  type Round,
  requireOne,
  requireSpoken,
  type Session,
} from "./left-out.ts";
import { advance, begin, isDone, isFresh, isRefused, type Progress } from "./progress.ts";
import { gaveUp, rejected } from "./refusal.ts";

/** Tries before giving up on a table that others keep changing. */
const triesMax = 8;

/** Kept back for taking out again what a call that runs out of time has made. */
const takeBackMs = 2_000;

/** What converging did. */
export type Converged = {
  /** The families that were written to; none when all was right already. */
  readonly written: readonly Family[];
  /** Those that held nothing of ours before. */
  readonly created: readonly Family[];
  /** Those that were left out: the netns does not speak them, and nothing of ours is there for them. */
  readonly left: readonly Left[];
  /** What the netns has of the families that the client looks at. */
  readonly presence: Presence | undefined;
  /** What came of the jobs that were only to look. */
  readonly looked: readonly Outcome[];
  /** The tools may have asked the network for users. */
  readonly unmasked?: true;
};

/** Read-only jobs that go along with the first try, and with the second if there is one. */
export type Looks = { readonly first: readonly Job[]; readonly again: () => Promise<Job[]> };

const noLooks: Looks = { first: [], again: () => Promise.resolve([]) };

/**
 * Ends with every ruleset in place, read back and equal, or throws with nothing left half-way: families that held
 * nothing of ours before hold nothing again. Families that need not be redirected (Session.required) may be left out, but
 * never all.
 * @throws CniError 11 when others kept interfering or the time ran out, 101 when the tools refused.
 */
export async function converge(
  session: Session,
  rulesets: readonly Ruleset[],
  looks = noLooks,
): Promise<Converged> {
  const round: Round = { session, all: rulesets.map(begin), presence: undefined };
  const { all } = round;
  let tries = 1;
  try {
    leaveUnequipped(round);
    const looked = await tryOnce(round, looks.first);
    for (; !all.every(isDone); tries++) {
      if (tries === triesMax || session.remainingMs() < 100) giveUp(round, tries);
      else {
        if (tries > 1) await session.sleep(jitterMs(tries));
        looked.push(...(await tryOnce(round, await looksOf(looks, tries))));
      }
    }
    requireOne(all);
    await takeBack(
      session,
      all.filter(({ left }) => left !== undefined),
    );
    return resultOf(round, looked);
  } catch (error) {
    const isAsBefore = await takeBack(session, all);
    session.tookBack?.(isAsBefore);
    // Out of time: what kept us before says more than where we were when it ran out.
    const isKnown = all.some(({ failure }) => failure !== undefined);
    throw error instanceof BatchError && isKnown ? gaveUp(session.choice, all, tries) : error;
  }
}

async function looksOf({ again }: Looks, tries: number): Promise<readonly Job[]> {
  return tries === 1 ? await again() : [];
}

function resultOf({ all, presence }: Round, looked: readonly Outcome[]): Converged {
  const placed = all.filter(({ left }) => left === undefined);
  const families = (some: readonly Progress[]) => some.map(({ ruleset }) => ruleset.family);
  return {
    written: families(placed.filter(({ changed }) => changed)),
    created: families(placed.filter(({ created }) => created)),
    left: all.flatMap(({ ruleset: { family }, left }): Left[] => {
      if (left === undefined) return [];
      return [left instanceof CniError ? { family, error: left } : { family }];
    }),
    presence,
    looked,
    ...(all.some(({ unmasked }) => unmasked) ? { unmasked: true } : {}),
  };
}

async function tryOnce(round: Round, looks: readonly Job[]): Promise<Outcome[]> {
  const { session, all } = round;
  const open = all.filter((progress) => !isDone(progress));
  const jobs = open.map(({ ruleset, transaction }) => {
    const job = restoreJob(session.choice, ruleset.family, transaction);
    return mayBeAbsent(session, ruleset.family) ? { ...job, ifPossible: true as const } : job;
  });
  const outcomes = await runAll(session, open, [...jobs, ...looks]);
  round.presence = outcomes[0]?.presence ?? round.presence;
  for (const [i, progress] of open.entries()) {
    const outcome = outcomes[i];
    if (outcome?.absent === true) progress.left = "absent";
    else if (outcome !== undefined) advance(progress, outcome, readTable(outcome));
  }
  for (const progress of open) {
    if (isRefused(progress)) progress.left = rejected(session.choice, progress);
  }
  requireSpoken(round);
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
    // Else the child did not come as far as the netns.
    const wasThere = !(error instanceof BatchError) || error.isPassing || restored.length > 0;
    for (const progress of open) {
      const isRestored = restored.some(({ family }) => family === progress.ruleset.family);
      progress.created ||= isRestored && isFresh(progress.transaction);
      progress.changed ||= isRestored;
      // Loaded or not before it was ended.
      progress.doubtful ||= wasThere && !isRestored && progress.transaction.length > 0;
    }
    throw error;
  }
}

/** The nat table that a job read, or why it could not be read. */
export function readTable(outcome: Outcome): Table | Error {
  return readTables(outcome).nat;
}

/** The tables that a job read, each or why it could not be read; and whether others are in nat's way (see save.Tables). */
export type Readout = Readonly<Record<TableName, Table | Error>> & Pick<Tables, "isMixed">;

/** All that a job read. */
export function readTables(outcome: Outcome): Readout {
  const undecoded = outcome.saveStatus === 0 ? null : undecodable.exec(outcome.stderr);
  if (undecoded !== null) {
    return same({ ...emptyTable, unverifiable: `${undecoded[0]}.` }, true);
  }
  if (outcome.saveStatus !== 0) {
    return same(new Error(readFailure(outcome.saveStatus, outcome.stderr).said));
  }
  try {
    return parseTables(outcome.saved);
  } catch (error) {
    if (error instanceof SaveSyntaxError) return same(error);
    throw error;
  }
}

function same(read: Table | Error, isMixed = false): Readout {
  return { nat: read, raw: read, mangle: read, isMixed };
}

// Some rule of nft's own (`meta skuid 5`) ends iptables-save, which does not say where it stands: the tool works, and the
// tables cannot be shown.
const undecodable = /Parsing nftables rule failed|Cannot decode all rules provided by kernel/;

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

// Exactly what was made is taken out again; where somebody changed it meanwhile the kernel refuses. True when all is known
// to be as it was before.
async function takeBack(session: Session, all: readonly Progress[]): Promise<boolean> {
  if (session.place === "scratch") return true;
  const open = all.filter(({ created, doubtful }) => created || doubtful);
  const jobs = open.map(({ ruleset, created }) => {
    const removal = created ? planRemoval(namesOf(ruleset), asTable(ruleset)) : [];
    return restoreJob(session.choice, ruleset.family, removal);
  });
  const isRewritten = all.some(({ changed, created }) => changed && !created);
  if (jobs.length === 0) return !isRewritten;
  for (const progress of all) progress.created = false;
  try {
    const timeoutMs = Math.max(session.remainingMs(), takeBackMs);
    const outcomes = await session.client(session.place, jobs, timeoutMs);
    return !isRewritten && open.every(({ ruleset }, i) => isWithout(ruleset, outcomes[i]));
  } catch (error) {
    // The error that brought us here says more. What was loaded before the tools were ended is out all the same.
    const restored = error instanceof BatchError ? error.restored : [];
    const isOut = (one: Progress) => restored.some(({ family }) => family === one.ruleset.family);
    return !isRewritten && open.every(isOut);
  }
}

// A removal that was loaded, or a table that holds nothing of ours.
function isWithout(ruleset: Ruleset, outcome: Outcome | undefined): boolean {
  if (outcome === undefined) return false;
  if (outcome.job.restore !== "" && outcome.restoreStatus === 0) return true;
  const table = readTable(outcome);
  if (table instanceof Error || table.unverifiable !== undefined) return false;
  return !holdsAny(table, namesOf(ruleset));
}

function namesOf({ chains }: Ruleset): string[] {
  return chains.map(({ name }) => name);
}

function asTable(ruleset: Ruleset): Table {
  const own = ruleset.chains.map(({ name, rules }) => [name, rules] as const);
  const hooks = ruleset.chains.map(({ hook, jump }) => [hook, [jump]] as const);
  return { chains: new Map([...own, ...hooks]) };
}

// Grows with the tries; random, so that two who are in each other's way do not meet again.
function jitterMs(tries: number): number {
  return Math.random() * 40 * 2 ** Math.min(tries, 4);
}
