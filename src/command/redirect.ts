// Puts a pod's rules in place, in one backend and not in the other. Serves ADD and repair.

import { withProof } from "../attachment/knowledge.ts";
import { CniError } from "../cni/error.ts";
import { ownChains } from "../mesh/linkerd.ts";
import { type BackendChoice, equip } from "../netfilter/choice.ts";
import type { Job, Outcome } from "../netfilter/client.ts";
import { converge, isRefusal, readTable } from "../netfilter/converge.ts";
import { readFailure } from "../netfilter/failure.ts";
import { removeOwn } from "../netfilter/remove.ts";
import { foreignRedirects } from "../netfilter/shadow.ts";
import { type Backend, backends, type Family, holdsAny, type Ruleset } from "../netfilter/table.ts";
import { openToolbox } from "../netfilter/toolbox.ts";
import type { Netns } from "../netns/path.ts";
import { type Chosen, chooseBackend } from "./backend.ts";
import { type Call, sessionOf } from "./call.ts";

/** What was done: through which backend, and which families were written to. */
export type Redirected = { readonly choice: BackendChoice; readonly changed: readonly Family[] };

type Work = { readonly netns: Netns; readonly rulesets: readonly Ruleset[] };

/**
 * Ends with the rulesets in place and proven, and nothing of ours in the other backend.
 * @throws CniError 11 or 101 (see converge); nothing of this call is left half-way then.
 */
export async function redirect(call: Call, work: Work): Promise<Redirected> {
  const wanted = work.rulesets.map(({ family }) => family);
  const chosen = await chooseBackend(call, wanted);
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

async function redirectThrough(call: Call, work: Work, chosen: Chosen): Promise<Redirected> {
  const { choice, free } = chosen;
  const other = otherThan(choice.backend);
  const looks = await looksInto(call, other, work.rulesets);
  const session = sessionOf(call, work.netns, choice);
  const { written, created, looked, unmasked } = await converge(session, work.rulesets, looks);
  tellNss(call, unmasked === true);
  remember(call, choice.backend);
  const strays = looked.filter((outcome) => holdsOwn(call, outcome)).map(({ job }) => job.family);
  if (strays.length === 0) return { choice, changed: written };
  // Nothing of ours was here before, and nobody named this backend: the pod's rules stay where they were.
  const stays = free && created.length === work.rulesets.length;
  const wanted = stays ? work.rulesets.map(({ family }) => family) : strays;
  const decided = { backend: other, reason: "own chains were there" };
  const found = await equip(openToolbox(call.deps), decided, wanted);
  const [kept, left] = stays ? [found, choice] : [choice, found];
  // Both are live until one goes, and the one that stays is complete before: no instant without redirect.
  if (stays) await converge(sessionOf(call, work.netns, kept), work.rulesets);
  const cleaned = await removeOwn(sessionOf(call, work.netns, left), wanted, ownChains);
  call.log.info({ kept: kept.backend, cleaned: left.backend }, "own chains were in both backends");
  return { choice: kept, changed: [...new Set([...written, ...cleaned])] };
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

/** Jobs that read the other backend's tables, where the node has programs for it. */
export async function looksInto(
  call: Call,
  backend: Backend,
  rulesets: readonly Ruleset[],
): Promise<Job[]> {
  const toolbox = openToolbox(call.deps);
  const jobs = rulesets.map(async ({ family }): Promise<Job[]> => {
    const tools = await toolbox.find(backend, family);
    return tools === undefined ? [] : [{ family, backend, tools, restore: "" }];
  });
  return (await Promise.all(jobs)).flat();
}

/** The backend that is not this one. */
export function otherThan(backend: Backend): Backend {
  return backends.find((other) => other !== backend) ?? backend;
}

// Best effort: what is not remembered is found out again.
function remember(call: Call, backend: Backend): void {
  const known = call.store.knowledge();
  if (known.proven.includes(backend) && known.decision?.provisional !== true) return;
  call.store.keepKnowledge(withProof(known, backend));
}
