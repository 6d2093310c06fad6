// Takes everything of ours out of a netns: in both families and both backends, whatever a record says of them, and proven
// by reading. Serves clean; redirect asks it whether anything is there when it fails.
import { Fault } from "../fault.ts";
import type { Session } from "../netfilter/converge/left-out.ts";
import { readTables, type Shown, shownIn } from "../netfilter/converge/readout.ts";
import { type Removal, removeOwn, removeSeen } from "../netfilter/converge/remove.ts";
import { isFreeOf } from "../netfilter/converge/remove-blindly.ts";
import { makeClient } from "../netfilter/iptables/client.ts";
import { readFailure } from "../netfilter/iptables/failure.ts";
import type { Job, Outcome } from "../netfilter/iptables/job.ts";
import { toolsFor } from "../netfilter/iptables/tools.ts";
import type { Own } from "../netfilter/own.ts";
import { type Backend, backends, type Family, families } from "../netfilter/table.ts";
import { holdsAny } from "../netfilter/transaction.ts";
import type { Netns } from "../netns/path.ts";
import { equip } from "../node/choice.ts";
import { openPrograms } from "../node/programs.ts";
import { fewOf } from "../text/telling.ts";
import { looksInto } from "./look.ts";
import { type Entered, nameOf, sessionOf, type Task } from "./task.ts";

/** Where rules of ours are, or must be looked for; with the tables, where they were read just now. */
export type Spot = Pick<Job, "backend" | "family"> & { readonly shown?: Shown };

/** Where an attachment's rules were put: there the tools must be, and must answer; and what is ours there. */
export type Written = {
  readonly backend: Backend;
  readonly families: readonly Family[];
  readonly own: Own;
};

/**
 * Ends with nothing of ours in the netns.
 * @returns the families that were written to.
 * @throws Fault try-again or rejected, BatchError, when that could not be brought about, or not be seen.
 */
export async function removeAll(task: Task, here: Entered, written: Written): Promise<Family[]> {
  const spots = await findOwn(task, here.netns, written);
  return await removeSpots(task, here, { own: written.own, spots });
}

/** What is ours, and where it is. */
export type Removing = { readonly own: Own; readonly spots: readonly Spot[] };

/** Takes our rules out of these spots. @returns the families that were written to. @throws as removeOwn and equip do. */
export async function removeSpots(
  task: Task,
  here: Entered,
  { own, spots }: Removing,
): Promise<Family[]> {
  const changed: Family[] = [];
  for (const backend of backends) {
    const there = spots.filter((spot) => spot.backend === backend);
    if (there.length === 0) continue;
    const decided = { backend, reason: "own chains are there" };
    const wanted = there.map(({ family }) => family);
    const choice = await equip(openPrograms(task.deps), decided, wanted);
    const removal = await remove(sessionOf(task, here.netns, choice), { own, spots: there });
    changed.push(...cleaned(task, removal, { backend, of: nameOf(here) }));
  }
  return families.filter((family) => changed.includes(family));
}

// What was seen need not be looked at again.
function remove(session: Session, { own, spots }: Removing): Promise<Removal> {
  const seen = spots.flatMap(({ family, shown }) =>
    shown === undefined ? [] : [{ family, shown }],
  );
  if (seen.length === spots.length) return removeSeen(session, seen, own);
  const wanted = spots.map(({ family }) => family);
  return removeOwn(session, wanted, own);
}

/**
 * What a removal changed, where nothing of ours is left that acts on traffic. Chains that somebody else holds are only told.
 * @throws Fault try-again where something is left, or may be.
 */
function cleaned(
  task: Task,
  { written, left, husks }: Removal,
  { backend, of }: Where,
): readonly Family[] {
  if (husks.length > 0) task.log.warn({ backend, left: fewOf(husks) }, huskWarning);
  if (left.length === 0) return written;
  throw new Fault(
    "try-again",
    `rules of ours could not be taken out of the nat table (${backend}) of ${of}`,
    { details: fewOf(left).join("; ") },
  );
}

type Where = { readonly backend: Backend; readonly of: string };

const huskWarning = "empty chains of ours stay, for rules of someone else's lead into them";

/**
 * The spots that hold own chains, of all that the node has tools for.
 * @throws Fault try-again where a table cannot be seen that may hold some, rejected where tools are missing that wrote here.
 */
export async function findOwn(task: Task, netns: Netns, written: Written): Promise<Spot[]> {
  const { backend, families: recorded, own } = written;
  const decided = { backend, reason: "as recorded" };
  const choice = await equip(openPrograms(task.deps), decided, recorded);
  for (const family of recorded) toolsFor(choice, family);
  const wanted = families.map((family) => ({ family, tables: own }));
  const looks = await Promise.all(backends.map((one) => looksInto(task, one, wanted)));
  const outcomes = await makeClient(task.deps)(netns, looks.flat(), task.remainingMs());
  const spots: Spot[] = [];
  for (const outcome of outcomes) {
    const holds = holdsOwn(outcome, written);
    const isThere = holds ?? !(await isFree(task, netns, { ...outcome.job, own }));
    if (isThere) spots.push(spotOf(outcome, own));
  }
  return spots;
}

/** The spot that an outcome shows. */
export function spotOf(outcome: Outcome, own: Own): Spot {
  const { backend, family } = outcome.job;
  const shown = shownIn(readTables(outcome), own);
  return shown instanceof Error ? { backend, family } : { backend, family, shown };
}

async function isFree(
  task: Task,
  netns: Netns,
  { backend, family, own }: Pick<Job, "backend" | "family"> & { readonly own: Own },
): Promise<boolean> {
  const choice = await equip(openPrograms(task.deps), { backend, reason: "it is asked" }, [family]);
  const session = sessionOf(task, netns, choice);
  for (const names of own) if (!(await isFreeOf(session, family, names))) return false;
  return true;
}

// Undefined where the text does not tell, so that the kernel must.
function holdsOwn(outcome: Outcome, written: Written): boolean | undefined {
  const { backend, family } = outcome.job;
  const shown = shownIn(readTables(outcome), written.own);
  if (shown instanceof Error) {
    const isRecorded = backend === written.backend && written.families.includes(family);
    const { kind } = readFailure(outcome.saveStatus, outcome.stderr);
    // What the node's kernel or tools cannot do, they cannot have done: nothing of ours is there.
    if (kind === "unsupported" && !isRecorded) return false;
    throw unseen(outcome, shown.message);
  }
  if (holdsAny(written.own, shown.tables)) return true;
  return shown.unverifiable === undefined ? false : undefined;
}

function unseen({ job }: Outcome, said: string): Fault {
  const { tools, backend, family } = job;
  return new Fault(
    "try-again",
    `${tools.save} (${backend}, ${family}) could not show the nat table: ${said}`,
    { details: "whether rules of ours are in it is not known" },
  );
}
