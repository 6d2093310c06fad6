// Brings a netns to its rulesets and proves it: write, read back, compare; from whatever state, as often as it takes.
// Serves ADD and repair. Edge: works through the client.
import { Fault } from "../../fault.ts";
import { BatchError } from "../iptables/client.ts";
import type { Job, Outcome } from "../iptables/job.ts";
import type { Presence } from "../iptables/presence.ts";
import { emptyTables, ownOf, type Tables } from "../own.ts";
import type { Family, OwnTable, Ruleset, Table } from "../table.ts";
import { holdsAny, removalOf } from "../transaction.ts";
import { jobFor } from "./job.ts";
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
import {
  advance,
  begin,
  isAllCreated,
  isDone,
  isRefused,
  type Progress,
  takeLoaded,
} from "./progress.ts";
import { readTables, shownIn } from "./readout.ts";
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
  /** The versions of the tools that read the tables, as they say them; of tables that are read without them there is none. */
  readonly versions: ReadonlyMap<Family, string>;
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
 * @throws Fault try-again when others kept interfering or the time ran out, rejected when the tools refused.
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
    created: families(placed.filter(isAllCreated)),
    left: all.flatMap(({ ruleset: { family }, left }): Left[] => {
      if (left === undefined) return [];
      return [left instanceof Fault ? { family, error: left } : { family }];
    }),
    presence,
    looked,
    versions: new Map(
      placed.flatMap(({ ruleset: { family }, version }) => {
        return version === undefined ? [] : [[family, version] as const];
      }),
    ),
    ...(all.some(({ unmasked }) => unmasked) ? { unmasked: true } : {}),
  };
}

async function tryOnce(round: Round, looks: readonly Job[]): Promise<Outcome[]> {
  const { session, all } = round;
  const open = all.filter((progress) => !isDone(progress));
  const jobs = open.map(({ ruleset, transaction }) => {
    const job = jobFor(session.choice, ruleset, transaction);
    return mayBeAbsent(session, ruleset.family) ? { ...job, ifPossible: true as const } : job;
  });
  const outcomes = await runAll(session, open, [...jobs, ...looks]);
  round.presence = outcomes[0]?.presence ?? round.presence;
  for (const [i, progress] of open.entries()) {
    const outcome = outcomes[i];
    if (outcome?.absent === true) progress.left = "absent";
    else if (outcome !== undefined) advance(progress, outcome);
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
      if (isRestored) takeLoaded(progress, progress.transaction);
      // Loaded or not before it was ended.
      progress.doubtful ||= wasThere && !isRestored && progress.transaction.length > 0;
    }
    throw error;
  }
}

// Exactly what was made is taken out again; where somebody changed it meanwhile the kernel refuses. True when all is known
// to be as it was before.
async function takeBack(session: Session, all: readonly Progress[]): Promise<boolean> {
  if (session.place === "scratch") return true;
  const open = all.filter(({ created, doubtful }) => created.size > 0 || doubtful);
  const jobs = open.map(({ ruleset, created }) => {
    const made = ruleset.tables.filter(({ name }) => created.has(name));
    const removal = removalOf(ownOf([{ ...ruleset, tables: made }]), asTables(made));
    return jobFor(session.choice, ruleset, removal);
  });
  const isRewritten = all.some(({ isRewritten }) => isRewritten);
  if (jobs.length === 0) return !isRewritten;
  for (const progress of all) progress.created = new Set();
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

// A removal that was loaded, or tables that hold nothing of ours.
function isWithout(ruleset: Ruleset, outcome: Outcome | undefined): boolean {
  if (outcome === undefined) return false;
  if (outcome.job.restore !== "" && outcome.restoreStatus === 0) return true;
  const shown = shownIn(readTables(outcome), ruleset.tables);
  if (shown instanceof Error || shown.unverifiable !== undefined) return false;
  return !holdsAny(ownOf([ruleset]), shown.tables);
}

function asTables(made: readonly OwnTable[]): Tables {
  return { ...emptyTables, ...Object.fromEntries(made.map((own) => [own.name, asTable(own)])) };
}

function asTable({ chains, placed }: OwnTable): Table {
  const hooks = [...new Set(placed.map(({ hook }) => hook))];
  const builtin = hooks.map((hook) => {
    return [hook, placed.filter((one) => one.hook === hook).map(({ rule }) => rule)] as const;
  });
  return {
    chains: new Map([...chains.map(({ name, rules }) => [name, rules] as const), ...builtin]),
  };
}

// Grows with the tries; random, so that two who are in each other's way do not meet again.
function jitterMs(tries: number): number {
  return Math.random() * 40 * 2 ** Math.min(tries, 4);
}
