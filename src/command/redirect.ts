// Puts a pod's rules in place, in one backend and not in the other. Serves ADD and repair.

import { withProof } from "../attachment/knowledge.ts";
import { CniError } from "../cni/error.ts";
import { ownChains } from "../mesh/linkerd.ts";
import { type BackendChoice, equip } from "../netfilter/choice.ts";
import type { Job, Outcome } from "../netfilter/client.ts";
import { type Converged, converge, isRefusal, readTable } from "../netfilter/converge.ts";
import { readFailure } from "../netfilter/failure.ts";
import { removeOwn } from "../netfilter/remove.ts";
import { foreignRedirects } from "../netfilter/shadow.ts";
import {
  type Backend,
  backends,
  type Family,
  families,
  holdsAny,
  type Ruleset,
} from "../netfilter/table.ts";
import { openToolbox } from "../netfilter/toolbox.ts";
import type { Netns } from "../netns/path.ts";
import type { Chosen } from "./backend.ts";
import { type Call, sessionOf } from "./call.ts";
import { removeSpots, type Spot } from "./clean.ts";
import { looksInto, otherThan } from "./look.ts";

/** What was done. */
export type Redirected = {
  /** The backend that has the rules now. */
  readonly choice: BackendChoice;
  /** The families that were written to. */
  readonly changed: readonly Family[];
  /** Those that held nothing of ours before, in any backend. */
  readonly created: readonly Family[];
};

export type Redirecting = {
  readonly netns: Netns;
  readonly rulesets: readonly Ruleset[];
  /** Records tell of rules of ours in this netns: then there may be some of families that are not wanted any more. */
  readonly isKnown: boolean;
};

/**
 * Ends with the rulesets in place and proven, and nothing of ours in another family or backend.
 * @throws CniError 11 or 101 (see converge); no family is left half-way then.
 */
export async function redirect(call: Call, work: Redirecting, chosen: Chosen): Promise<Redirected> {
  const wanted = work.rulesets.map(({ family }) => family);
  try {
    return await redirectThrough(call, work, chosen);
  } catch (error) {
    const other = await fallback(call, chosen, { error, wanted });
    if (other === undefined) throw error;
    call.log.warn({ err: error, backend: other.backend }, "the other backend is taken instead");
    return await instead(error, redirectThrough(call, work, { choice: other, free: false }));
  }
}

// Two refusals are one error, with both reasons.
async function instead(first: unknown, second: Promise<Redirected>): Promise<Redirected> {
  try {
    return await second;
  } catch (error) {
    if (!(first instanceof CniError && error instanceof CniError)) throw error;
    const details = `${first.details}; then ${error.message}: ${error.details}`;
    throw new CniError(error.code, first.message, { details, cause: error });
  }
}

// Only a refusal (a module that is missing), and only where nobody named the backend.
async function fallback(
  call: Call,
  { choice, free }: Chosen,
  failed: { readonly error: unknown; readonly wanted: readonly Family[] },
): Promise<BackendChoice | undefined> {
  const { error, wanted } = failed;
  // A table that cannot be shown may hold rules of ours: in the other backend there would be a second set beside them.
  if (!free || !isRefusal(error)) return undefined;
  try {
    const decided = { backend: otherThan(choice.backend), reason: `${choice.backend} refused` };
    return await equip(openToolbox(call.deps), decided, wanted);
  } catch {
    // It has no programs here; the refusal itself says more.
    return undefined;
  }
}

async function redirectThrough(call: Call, work: Redirecting, chosen: Chosen): Promise<Redirected> {
  const { netns, rulesets } = work;
  const other = otherThan(chosen.choice.backend);
  const unwanted = families.filter((one) => !rulesets.some(({ family }) => family === one));
  const others = await looksInto(call, other, rulesets);
  // A netns that is not fresh may have rules of ours in more families. Where no record tells, a second try does.
  const looks = work.isKnown
    ? {
        first: [...others, ...(await looksAtAll(call, unwanted))],
        again: () => Promise.resolve([]),
      }
    : { first: others, again: () => looksAtAll(call, unwanted) };
  const done = await converge(sessionOf(call, netns, chosen.choice), rulesets, looks);
  tellNss(call, done.unmasked === true);
  remember(call, chosen.choice.backend);
  const strays = done.looked.filter((outcome) => holdsOwn(call, outcome)).map(({ job }) => job);
  const stale = strays.filter(({ family }) => unwanted.includes(family));
  const doubled = strays.filter(({ family }) => !unwanted.includes(family));
  const kept = await settle(call, work, { chosen, done, doubled });
  const cleaned = await removeSpots(call, netns, stale);
  return { ...kept, changed: [...new Set([...kept.changed, ...cleaned])] };
}

type Settling = {
  readonly chosen: Chosen;
  readonly done: Converged;
  /** Where the other backend has rules of ours as well, of families that are wanted. */
  readonly doubled: readonly Spot[];
};

// One backend of two: both are live until one goes.
async function settle(
  call: Call,
  { netns, rulesets }: Redirecting,
  { chosen, done, doubled }: Settling,
): Promise<Redirected> {
  const { choice, free } = chosen;
  const { written, created } = done;
  if (doubled.length === 0) return { choice, changed: written, created };
  // Nothing of ours was here before, and nobody named this backend: the pod's rules stay where they were.
  const stays = free && created.length === rulesets.length;
  const wanted = stays ? rulesets.map(({ family }) => family) : doubled.map(({ family }) => family);
  const decided = { backend: otherThan(choice.backend), reason: "own chains were there" };
  const found = await equip(openToolbox(call.deps), decided, wanted);
  const [kept, left] = stays ? [found, choice] : [choice, found];
  // The one that stays is complete before the other goes: no instant without redirect.
  if (stays) await converge(sessionOf(call, netns, kept), rulesets);
  const cleaned = await removeOwn(sessionOf(call, netns, left), wanted, ownChains);
  call.log.info({ kept: kept.backend, cleaned: left.backend }, "own chains were in both backends");
  return { choice: kept, changed: [...new Set([...written, ...cleaned])], created: [] };
}

async function looksAtAll(call: Call, wanted: readonly Family[]): Promise<Job[]> {
  const spots = wanted.map((family) => ({ family }));
  return (await Promise.all(backends.map((backend) => looksInto(call, backend, spots)))).flat();
}

function tellNss({ deps, log }: Call, unmasked: boolean): void {
  const nss = deps.nssMask();
  if (unmasked) log.warn({ nss }, "could not be hidden from the tools, which may ask the network");
  else if (nss.length > 0) log.info({ nss }, "hidden from the tools, which would ask the network");
}

// What others have there is only reported.
function holdsOwn(call: Call, outcome: Outcome): boolean {
  const { backend, family } = outcome.job;
  const table = readTable(outcome);
  if (table instanceof Error) {
    // The other backend need not work on this node: then nothing of ours can be in it.
    const { kind, said } = readFailure(outcome.saveStatus, outcome.stderr);
    if (kind !== "unsupported") call.log.warn({ backend, family, said }, hiddenWarning);
    return false;
  }
  const said = table.unverifiable;
  if (said !== undefined) call.log.warn({ backend, family, said }, hiddenWarning);
  const rules = foreignRedirects(table);
  if (rules.length > 0) call.log.warn({ backend, family, rules }, strangerWarning);
  return holdsAny(table, ownChains);
}

const strangerWarning =
  "rules of someone else's redirect traffic in the other backend; which of the two wins is not ours to decide";

const hiddenWarning =
  "the other backend's nat table cannot be shown; whether it redirects as well is not known";

// Best effort: what is not remembered is found out again.
function remember(call: Call, backend: Backend): void {
  const known = call.store.knowledge();
  if (known.proven.includes(backend) && known.decision?.provisional !== true) return;
  call.store.keepKnowledge(withProof(known, backend));
}
