// Puts a pod's rules in place, in one backend and not in the other. Serves ADD and repair.

import { type Call, sessionOf } from "../command/call.ts";
import { Fault } from "../fault.ts";
import { othersThan } from "../netfilter/backend.ts";
import { type Converged, converge } from "../netfilter/converge/converge.ts";
import type { Scope } from "../netfilter/converge/job.ts";
import type { Left, Session } from "../netfilter/converge/left-out.ts";
import { readTables, type Shown, shownIn } from "../netfilter/converge/readout.ts";
import { isRefusal } from "../netfilter/converge/refusal.ts";
import { makeClient } from "../netfilter/iptables/client.ts";
import { foreignNetnsAdvice, readFailure } from "../netfilter/iptables/failure.ts";
import type { Job, Outcome } from "../netfilter/iptables/job.ts";
import type { Presence } from "../netfilter/iptables/presence.ts";
import type { BackendChoice } from "../netfilter/iptables/tools.ts";
import { type Own, ownOf } from "../netfilter/own.ts";
import { foreignRedirects } from "../netfilter/shadow.ts";
import {
  type Backend,
  backends,
  type Family,
  families,
  type Ruleset,
  type RuleText,
} from "../netfilter/table.ts";
import { holdsAny } from "../netfilter/transaction.ts";
import type { Netns } from "../netns/path.ts";
import type { Chosen, Wanting } from "../node/backend.ts";
import { type Decided, equip } from "../node/choice.ts";
import { isProven, withProof } from "../node/knowledge.ts";
import { openPrograms } from "../node/programs.ts";
import { printable } from "../text/printable.ts";
import { fewOf } from "../text/telling.ts";
import { removeSpots, type Spot, spotOf } from "./clean.ts";
import { hiddenWarning, looksInto } from "./look.ts";
import { withForeignBases } from "./native.ts";

/** What was done. */
export type Redirected = {
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
};

export type Redirecting = {
  readonly netns: Netns;
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
export async function redirect(call: Call, work: Redirecting, chosen: Chosen): Promise<Redirected> {
  const wanted = work.rulesets.map(({ family }) => family);
  try {
    return await redirectThrough(call, work, chosen);
  } catch (error) {
    const other = await fallback(call, chosen, { error, wanted, required: work.required });
    if (other === undefined) {
      throw await withForeignBases(call, sessionOf(call, work.netns, chosen.choice), error);
    }
    call.log.warn({ err: error, backend: other.backend }, "the other backend is taken instead");
    return await instead(error, redirectThrough(call, work, { choice: other, free: false }));
  }
}

// Two refusals are one error, with both reasons.
async function instead(first: unknown, second: Promise<Redirected>): Promise<Redirected> {
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
  call: Call,
  { choice, free }: Chosen,
  failed: Wanting & { readonly error: unknown },
): Promise<BackendChoice | undefined> {
  const { error, wanted, required } = failed;
  // A table that cannot be shown may hold rules of ours: in the other backend there would be a second set beside them.
  if (!free || !isRefusal(error) || isOfForeignNetns(error)) return undefined;
  const isServed = ({ tools }: BackendChoice) => {
    return wanted.every((family) => tools.has(family) || !required.includes(family));
  };
  for (const backend of othersThan(choice.backend)) {
    const decided = { backend, reason: `${choice.backend} refused` };
    const other = await equipped(call, decided, wanted);
    if (other !== undefined && isServed(other)) return other;
  }
  return undefined;
}

// It may have no programs here; the refusal itself says more.
async function equipped(
  call: Call,
  decided: Decided,
  wanted: readonly Family[],
): Promise<BackendChoice | undefined> {
  try {
    return await equip(openPrograms(call.deps), decided, wanted);
  } catch (error) {
    if (error instanceof Fault) return undefined;
    throw error;
  }
}

// Of a netns that another user namespace owns, legacy would refuse as well, and leave a table that nothing takes away.
function isOfForeignNetns(error: unknown): boolean {
  return error instanceof Fault && error.details.includes(foreignNetnsAdvice);
}

async function redirectThrough(call: Call, work: Redirecting, chosen: Chosen): Promise<Redirected> {
  const { netns, rulesets } = work;
  const own = ownOf(rulesets);
  const unwanted = families.filter((one) => !rulesets.some(({ family }) => family === one));
  const scopes = unwanted.map((family): Scope => ({ family, tables: own }));
  const others = await looksAtAll(call, othersThan(chosen.choice.backend), rulesets);
  // A netns that is not fresh may have rules of ours in more families. Where no record tells, a second try does.
  const looks = work.isKnown
    ? {
        first: [...others, ...(await looksAtAll(call, backends, scopes))],
        again: () => Promise.resolve([]),
      }
    : { first: others, again: () => looksAtAll(call, backends, scopes) };
  const done = await converge(sessionFor(call, work, chosen.choice), rulesets, looks);
  tellNss(call, done.unmasked === true);
  const placed = placedOf(work, done).map(({ family }) => family);
  remember(call, chosen.choice.backend, placed);
  const strays = done.looked
    .filter((outcome) => holdsOwn(call, outcome, rulesets))
    .map((outcome) => spotOf(outcome, own));
  const stale = strays.filter(({ family }) => unwanted.includes(family));
  const doubled = strays.filter(({ family }) => !unwanted.includes(family));
  try {
    const kept = await settle(call, work, { chosen, done, doubled });
    const gone = await removeSpots(call, netns, { own, spots: stale });
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
function sessionFor(call: Call, work: Redirecting, choice: BackendChoice): Session {
  const { netns, required, tookBack } = work;
  const looked = families.filter((family) => !required.includes(family));
  return {
    ...sessionOf(call, netns, choice),
    client: makeClient(call.deps, looked),
    required,
    ...(tookBack === undefined ? {} : { tookBack }),
  };
}

function placedOf({ rulesets }: Redirecting, { left }: Converged): Ruleset[] {
  return rulesets.filter(({ family }) => !left.some((one) => one.family === family));
}

// One backend of several: all are live until the others go.
async function settle(
  call: Call,
  work: Redirecting,
  { chosen, done, doubled }: Settling,
): Promise<Redirected> {
  const { netns } = work;
  const { choice, free } = chosen;
  const { written, created, left, presence } = done;
  const [elsewhere] = doubled;
  if (elsewhere === undefined) return { choice, changed: written, created, left, presence };
  const placed = placedOf(work, done);
  // Nothing of ours was here before, and nobody named this backend: the pod's rules stay where they were.
  const stays = free && created.length === placed.length;
  const kept = stays ? await staying(call, netns, { elsewhere, placed }) : choice;
  const here = placed.map(({ family }) => ({ backend: choice.backend, family }));
  const all = [...here, ...doubled.map(({ backend, family }) => ({ backend, family }))];
  const spots = all.filter(({ backend }) => backend !== kept.backend);
  const cleared = await removeSpots(call, netns, { own: ownOf(placed), spots });
  const gone = [...new Set(spots.map(({ backend }) => backend))].join(", ");
  call.log.info({ kept: kept.backend, cleaned: gone }, "own chains were in both backends");
  const changed = [...new Set([...written, ...cleared])];
  return { choice: kept, changed, created: [], left, presence };
}

type Staying = { readonly elsewhere: Spot; readonly placed: readonly Ruleset[] };

// What stays is complete before the rest goes: no instant without redirect.
async function staying(
  call: Call,
  netns: Netns,
  { elsewhere, placed }: Staying,
): Promise<BackendChoice> {
  const decided = { backend: elsewhere.backend, reason: "own chains were there" };
  const wanted = placed.map(({ family }) => family);
  const kept = await equip(openPrograms(call.deps), decided, wanted);
  await converge(sessionOf(call, netns, kept), placed);
  return kept;
}

async function looksAtAll(
  call: Call,
  through: readonly Backend[],
  wanted: readonly Scope[],
): Promise<Job[]> {
  return (await Promise.all(through.map((backend) => looksInto(call, backend, wanted)))).flat();
}

function tellNss({ deps, log }: Call, unmasked: boolean): void {
  const nss = deps.nssMask();
  if (unmasked) log.warn({ nss }, "could not be hidden from the tools, which may ask the network");
  else if (nss.length > 0) log.info({ nss }, "hidden from the tools, which would ask the network");
}

// What others have there is only reported.
function holdsOwn(call: Call, outcome: Outcome, rulesets: readonly Ruleset[]): boolean {
  const { backend, family } = outcome.job;
  const own = ownOf(rulesets);
  const shown = shownIn(readTables(outcome), own);
  if (shown instanceof Error) {
    // The other backend need not work on this node: then nothing of ours can be in it.
    const { kind, said } = readFailure(outcome.saveStatus, outcome.stderr);
    if (kind !== "unsupported") call.log.warn({ backend, family, said }, hiddenWarning);
    return false;
  }
  const said = shown.unverifiable;
  if (said !== undefined) call.log.warn({ backend, family, said }, hiddenWarning);
  const rules = fewOf(strangersIn(shown, own, rulesets).map((rule) => printable(rule)));
  if (rules.length > 0) call.log.warn({ backend, family, rules }, strangerWarning);
  return holdsAny(own, shown.tables);
}

function strangersIn({ tables }: Shown, own: Own, rulesets: readonly Ruleset[]): RuleText[] {
  const [first] = rulesets;
  const chains = own.flatMap((names) => names.chains);
  return first === undefined ? [] : foreignRedirects(tables.nat, chains, first.traffic);
}

const strangerWarning =
  "rules of someone else's redirect traffic in the other backend; which of the two wins is not ours to decide";

// Best effort: what is not remembered is found out again.
function remember(call: Call, backend: Backend, placed: readonly Family[]): void {
  const known = call.store.knowledge();
  const isKnown = isProven(known, backend, placed);
  if (isKnown && known.decision?.provisional !== true) return;
  call.store.keepKnowledge(withProof(known, backend, placed));
}
