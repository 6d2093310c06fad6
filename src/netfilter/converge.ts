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
import { readFailure } from "./failure.ts";
import { planRemoval, type Transaction } from "./plan.ts";
import { advance, begin, isDone, isFresh, isRefused, type Progress } from "./progress.ts";
import { renderRestore } from "./restore.ts";
import { parseSave, SaveSyntaxError } from "./save.ts";
import { emptyTable, type Family, type Ruleset, type Table, type TableName } from "./table.ts";

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

/** Kept back for taking out again what a call that runs out of time has made. */
const takeBackMs = 2_000;

/** The table cannot be shown, so nothing about it can be proven: not a reason to write elsewhere without looking. */
export class UnverifiableError extends CniError {}

/** The tools refused for good, so that another backend may be looked at: it is not so where a table cannot be shown. */
export function isRefusal(error: unknown): boolean {
  const refused = error instanceof CniError && error.code === errorCode.restoreRejected;
  return refused && !(error instanceof UnverifiableError);
}

/** What converging did. */
export type Converged = {
  /** The families that were written to; none when all was right already. */
  readonly written: readonly Family[];
  /** Those that held nothing of ours before. */
  readonly created: readonly Family[];
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
 * nothing of ours before hold nothing again.
 * @throws CniError 11 when others kept interfering or the time ran out, 101 when the tools refused.
 */
export async function converge(
  session: Session,
  rulesets: readonly Ruleset[],
  looks = noLooks,
): Promise<Converged> {
  const all = rulesets.map(begin);
  let tries = 1;
  try {
    const looked = await tryOnce(session, all, looks.first);
    for (; !all.every(isDone); tries++) {
      if (tries === triesMax || session.remainingMs() < 100) throw gaveUp(session, all, tries);
      if (tries > 1) await session.sleep(jitterMs(tries));
      looked.push(...(await tryOnce(session, all, await looksOf(looks, tries))));
    }
    const families = (some: readonly Progress[]) => some.map(({ ruleset }) => ruleset.family);
    return {
      written: families(all.filter(({ changed }) => changed)),
      created: families(all.filter(({ created }) => created)),
      looked,
      ...(all.some(({ unmasked }) => unmasked) ? { unmasked: true } : {}),
    };
  } catch (error) {
    await takeBack(session, all);
    // Out of time: what kept us before says more than where we were when it ran out.
    const isKnown = all.some(({ failure }) => failure !== undefined);
    throw error instanceof BatchError && isKnown ? gaveUp(session, all, tries) : error;
  }
}

async function looksOf({ again }: Looks, tries: number): Promise<readonly Job[]> {
  return tries === 1 ? await again() : [];
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
    if (outcome !== undefined) advance(progress, outcome, readTable(outcome));
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

/** A table that a job read, or why it could not be read. */
export function readTable(outcome: Outcome, name: TableName = "nat"): Table | Error {
  const undecoded = outcome.saveStatus === 0 ? null : undecodable.exec(outcome.stderr);
  if (undecoded !== null) return { ...emptyTable, unverifiable: `${undecoded[0]}.` };
  if (outcome.saveStatus !== 0) {
    return new Error(readFailure(outcome.saveStatus, outcome.stderr).said);
  }
  try {
    return parseSave(outcome.saved, name);
  } catch (error) {
    if (error instanceof SaveSyntaxError) return error;
    throw error;
  }
}

/**
 * Some rule of nft's own (`meta skuid 5`) ends iptables-save, which does not say where it stands: the tool works, and the
 * table cannot be shown.
 */
export function isUndecodable({ saveStatus, stderr }: Outcome): boolean {
  return saveStatus !== 0 && undecodable.test(stderr);
}

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

// Exactly what was made is taken out again; where somebody changed it meanwhile the kernel refuses, and the netns is
// about to be torn down by the runtime anyway.
async function takeBack(session: Session, all: readonly Progress[]): Promise<void> {
  const jobs = all
    .filter(({ created }) => created)
    .map(({ ruleset }) => {
      const names = ruleset.chains.map(({ name }) => name);
      return restoreJob(session.choice, ruleset.family, planRemoval(names, asTable(ruleset)));
    });
  if (jobs.length === 0 || session.place === "scratch") return;
  try {
    await session.client(session.place, jobs, Math.max(session.remainingMs(), 2_000));
  } catch {
    // The error that brought us here says more than that cleaning up failed too.
  }
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
      {
        details:
          "another program keeps changing the rules in this netns, or save and restore are not of one version",
      },
    );
  }
  return new CniError(
    errorCode.tryAgainLater,
    `${places} failed in ${tries} tries: ${failure.said}`,
    { details: failure.advice || "another program keeps changing the rules in this netns" },
  );
}

function asTable(ruleset: Ruleset): Table {
  const own = ruleset.chains.map(({ name, rules }) => [name, rules] as const);
  const hooks = ruleset.chains.map(({ hook, jump }) => [hook, [jump]] as const);
  return { chains: new Map([...own, ...hooks]) };
}

// Which program, on what: `/usr/sbin/iptables-nft-restore (nft, ipv4, table nat, chain OUTPUT)`.
function placeOf(choice: BackendChoice, { ruleset, failure }: Progress): string {
  const { family } = ruleset;
  const { program, chain } = failure ?? { program: toolsFor(choice, family).restore, chain: "" };
  const inChain = chain === "" ? "" : `, chain ${chain}`;
  return `${program} (${choice.backend}, ${family}, table nat${inChain})`;
}

// Grows with the tries; random, so that two who are in each other's way do not meet again.
function jitterMs(tries: number): number {
  return Math.random() * 40 * 2 ** Math.min(tries, 4);
}
