// Which families' rules a chosen backend takes, tried in an empty netns: what STATUS asks, and ADD would find.
import { Fault } from "../fault.ts";
import { isRefusal } from "../netfilter/converge/refusal.ts";
import type { BackendChoice } from "../netfilter/iptables/tools.ts";
import type { Backend, Family } from "../netfilter/table.ts";
import { type Chosen, detectingOf } from "./backend.ts";
import { type Trial, tryBackends, tryChoice } from "./detect.ts";
import type { Means } from "./means.ts";

/** The backend that takes one family at least, and what was said of those that it does not take. */
export type Tried = {
  readonly backend: Backend;
  readonly refusals: ReadonlyMap<Family, string>;
};

/**
 * Tries the choice; as ADD does, the other backend where that refuses, and nobody named it.
 * @throws Fault or BatchError when no family can be served.
 */
export async function tryChosen(
  means: Means,
  { choice, free }: Chosen,
  wanted: readonly Family[],
): Promise<Tried> {
  const needed = { rulesets: means.settings.profile.trialRulesets(wanted), required: [] };
  const detecting = detectingOf(means);
  // Half of the time, so that there is some left for the other family where one does not come to an end.
  const inTime = { ...detecting, remainingMs: () => means.remainingMs() / 2 };
  try {
    const trial = await tryChoice(wanted.length > 1 ? inTime : detecting, choice, needed);
    return free && trial.refusals.size > 0 ? await tryBackends(detecting, needed) : trial;
  } catch (error) {
    if (free && isRefusal(error)) return await tryBackends(detecting, needed);
    if (isRefusal(error) || wanted.length === 1) throw error;
    return await tryEach(means, choice, { wanted, error });
  }
}

// One that hangs, or is locked, says nothing of the other.
async function tryEach(
  means: Means,
  choice: BackendChoice,
  { wanted, error }: { readonly wanted: readonly Family[]; readonly error: unknown },
): Promise<Tried> {
  const refusals = new Map<Family, string>();
  for (const family of wanted) {
    const trial = await tryOne(means, choice, family);
    if (typeof trial === "string") refusals.set(family, trial);
  }
  if (refusals.size === wanted.length) throw error;
  return { backend: choice.backend, refusals };
}

async function tryOne(
  means: Means,
  choice: BackendChoice,
  family: Family,
): Promise<Trial | string> {
  const detecting = { ...detectingOf(means), remainingMs: () => means.remainingMs() / 2 };
  try {
    const rulesets = means.settings.profile.trialRulesets([family]);
    return await tryChoice(detecting, choice, { rulesets, required: [] });
  } catch (error) {
    if (error instanceof Fault) return `${error.message} (${error.details})`;
    return error instanceof Error ? error.message : String(error);
  }
}
