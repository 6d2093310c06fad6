// Puts a pod's rules in place, in one backend and not in the others. What ADD and repair have in common (redirect.ts).
import { Fault } from "../fault.ts";
import { othersThan } from "../netfilter/backend.ts";
import { type Converged, converge } from "../netfilter/converge/converge.ts";
import type { Scope } from "../netfilter/converge/job.ts";
import type { Left, Session } from "../netfilter/converge/left-out.ts";
import { isRefusal } from "../netfilter/converge/refusal.ts";
import { makeClient } from "../netfilter/iptables/client.ts";
import { foreignNetnsAdvice } from "../netfilter/iptables/failure.ts";
import type { Presence } from "../netfilter/iptables/presence.ts";
import type { BackendChoice } from "../netfilter/iptables/tools.ts";
import { ownOf } from "../netfilter/own.ts";
import { type Backend, backends, type Family, families, type Ruleset } from "../netfilter/table.ts";
import type { Chosen } from "../node/backend.ts";
import { equip, equipOther, type Wanting } from "../node/choice.ts";
import { isProven, withProof } from "../node/knowledge.ts";
import { openPrograms } from "../node/programs.ts";
import { looksIntoAll } from "./look.ts";
import { withForeignBases } from "./native.ts";
import { removeSpots, type Spot, spotOf } from "./removal.ts";
import { holdsOwn } from "./strays.ts";
import { type Entered, sessionOf, type Task } from "./task.ts";

/** What was done. */
export type Applied = {
  /** The backend that has the rules now. */
  readonly choice: BackendChoice;
  /** The families that were written to. */
  readonly changed: readonly Family[];
  /** Those that held nothing of ours before, in any backend. */
  readonly created: readonly Family[];
  /** Those that were left out: the netns does not speak them, and nothing of this call is there for them. */
  readonly left: readonly Left[];
  /** What the netns has of the families that need not be redirected. */
  readonly presence: Presence | undefined;
  /** The versions of the tools that read the tables, as they say them. */
  readonly versions: Converged["versions"];
};

export type Applying = {
  readonly here: Entered;
  readonly rulesets: readonly Ruleset[];
  /** The families that must end redirected, whatever the netns has; those that it speaks must besides. */
  readonly required: readonly Family[];
  /** Records tell of rules of ours in this netns: then there may be some of families that are not wanted any more. */
  readonly isKnown: boolean;
  /** Told when something failed: whether the netns is known to be as it was before. */
  readonly tookBack?: (isAsBefore: boolean) => void;
};

/**
 * Ends with the rulesets in place and proven, and nothing of ours in another family or backend.
 * @throws Fault try-again or rejected (see converge); no family is left half-way then.
 */
export async function applyRules(task: Task, work: Applying, chosen: Chosen): Promise<Applied> {
  const wanted = work.rulesets.map(({ family }) => family);
  try {
    return await applyThrough(task, work, chosen);
  } catch (error) {
    const other = await fallback(task, chosen, { error, wanted, required: work.required });
    if (other === undefined) {
      throw await withForeignBases(task, sessionOf(task, work.here.netns, chosen.choice), error);
    }
    task.log.warn({ err: error, backend: other.backend }, "the other backend is taken instead");
    return await instead(error, applyThrough(task, work, { choice: other, free: false }));
  }
}

// Two refusals are one error, with both reasons.
async function instead(first: unknown, second: Promise<Applied>): Promise<Applied> {
  try {
    return await second;
  } catch (error) {
    if (!(first instanceof Fault && error instanceof Fault)) throw error;
    const details = `${first.details}; then ${error.message}: ${error.details}`;
    throw new Fault(error.kind, first.message, { details, cause: error });
  }
}

// Only a refusal (a module that is missing), and only where nobody named the backend.
async function fallback(
  { deps }: Task,
  { choice, free }: Chosen,
  failed: Wanting & { readonly error: unknown },
): Promise<BackendChoice | undefined> {
  const { error } = failed;
  // A table that cannot be shown may hold rules of ours: in the other backend there would be a second set beside them.
  if (!free || !isRefusal(error) || isOfForeignNetns(error)) return undefined;
  const other = { than: choice.backend, reason: `${choice.backend} refused` };
  return await equipOther(openPrograms(deps), other, failed);
}

// Of a netns that another user namespace owns, legacy would refuse as well, and leave a table that nothing takes away.
function isOfForeignNetns(error: unknown): boolean {
  return error instanceof Fault && error.details.includes(foreignNetnsAdvice);
}

async function applyThrough(task: Task, work: Applying, chosen: Chosen): Promise<Applied> {
  const { here, rulesets } = work;
  const own = ownOf(rulesets);
  const unwanted = families.filter((one) => !rulesets.some(({ family }) => family === one));
  const scopes = unwanted.map((family): Scope => ({ family, tables: own }));
  const others = await looksIntoAll(task, othersThan(chosen.choice.backend), rulesets);
  // A netns that is not fresh may have rules of ours in more families. Where no record tells, a second try does.
  const looks = work.isKnown
    ? {
        first: [...others, ...(await looksIntoAll(task, backends, scopes))],
        again: () => Promise.resolve([]),
      }
    : { first: others, again: () => looksIntoAll(task, backends, scopes) };
  const done = await converge(sessionFor(task, work, chosen.choice), rulesets, looks);
  tellNss(task, done);
  const placed = placedOf(work, done).map(({ family }) => family);
  remember(task, chosen.choice.backend, placed);
  const strays = done.looked
    .filter((outcome) => holdsOwn(task, outcome, rulesets))
    .map((outcome) => spotOf(outcome, own));
  const stale = strays.filter(({ family }) => unwanted.includes(family));
  const doubled = strays.filter(({ family }) => !unwanted.includes(family));
  try {
    const kept = await settle(task, work, { chosen, done, doubled });
    const gone = await removeSpots(task, here, { own, spots: stale });
    return { ...kept, changed: [...new Set([...kept.changed, ...gone])] };
  } catch (error) {
    work.tookBack?.(false);
    throw error;
  }
}

type Settling = {
  readonly chosen: Chosen;
  readonly done: Converged;
  /** Where the other backend has rules of ours as well, of families that are wanted. */
  readonly doubled: readonly Spot[];
};

// What prevResult names need not be looked for; whatever else the netns speaks is found in the same child.
function sessionFor(task: Task, work: Applying, choice: BackendChoice): Session {
  const { here, required, tookBack } = work;
  const looked = families.filter((family) => !required.includes(family));
  return {
    ...sessionOf(task, here.netns, choice),
    client: makeClient(task.deps, looked),
    required,
    ...(tookBack === undefined ? {} : { tookBack }),
  };
}

function placedOf({ rulesets }: Applying, { left }: Converged): Ruleset[] {
  return rulesets.filter(({ family }) => !left.some((one) => one.family === family));
}

// One backend of several: all are live until the others go.
async function settle(
  task: Task,
  work: Applying,
  { chosen, done, doubled }: Settling,
): Promise<Applied> {
  const { here } = work;
  const { choice, free } = chosen;
  const { written, created, left, presence, versions } = done;
  const [elsewhere] = doubled;
  if (elsewhere === undefined)
    return { choice, changed: written, created, left, presence, versions };
  const placed = placedOf(work, done);
  // Nothing of ours was here before, and nobody named this backend: the pod's rules stay where they were.
  const stays = free && created.length === placed.length;
  const kept = stays ? await staying(task, here, { elsewhere, placed }) : { choice, versions };
  const newly = placed.map(({ family }) => ({ backend: choice.backend, family }));
  const all = [...newly, ...doubled.map(({ backend, family }) => ({ backend, family }))];
  const spots = all.filter(({ backend }) => backend !== kept.choice.backend);
  const cleared = await removeSpots(task, here, { own: ownOf(placed), spots });
  const gone = [...new Set(spots.map(({ backend }) => backend))].join(", ");
  task.log.info({ kept: kept.choice.backend, cleaned: gone }, "own chains were in both backends");
  const changed = [...new Set([...written, ...cleared])];
  return { ...kept, changed, created: [], left, presence };
}

type Staying = { readonly elsewhere: Spot; readonly placed: readonly Ruleset[] };

// What stays is complete before the rest goes: no instant without redirect.
async function staying(
  task: Task,
  here: Entered,
  { elsewhere, placed }: Staying,
): Promise<Pick<Applied, "choice" | "versions">> {
  const decided = { backend: elsewhere.backend, reason: "own chains were there" };
  const wanted = placed.map(({ family }) => family);
  const choice = await equip(openPrograms(task.deps), decided, wanted);
  const { versions } = await converge(sessionOf(task, here.netns, choice), placed);
  return { choice, versions };
}

function tellNss({ deps, log }: Task, { unmasked }: Converged): void {
  const nss = deps.nssMask();
  if (unmasked === true)
    log.warn({ nss }, "could not be hidden from the tools, which may ask the network");
  else if (nss.length > 0) log.info({ nss }, "hidden from the tools, which would ask the network");
}

// Best effort: what is not remembered is found out again.
function remember(task: Task, backend: Backend, placed: readonly Family[]): void {
  const known = task.memory.read();
  const isKnown = isProven(known, backend, placed);
  if (isKnown && known.decision?.provisional !== true) return;
  task.memory.keep(withProof(known, backend, placed));
}
