// Through which backend rules go: the record's, the conf's, or the one that the node is found to use.
import { makeClient } from "../netfilter/iptables/client.ts";
import { type BackendChoice, toolsFor } from "../netfilter/iptables/tools.ts";
import type { Backend, Family } from "../netfilter/table.ts";
import { equip, equipOther, equipPlain, type Wanting } from "./choice.ts";
import { type Detecting, decisionOfTrial, findHint, type Hint, tryBackends } from "./detect.ts";
import type { Decision, Knowledge } from "./knowledge.ts";
import type { Means } from "./means.ts";
import { openPrograms, type Programs } from "./programs.ts";

/** A choice, and whether another one would do as well. */
export type Chosen = { readonly choice: BackendChoice; readonly free: boolean };

/**
 * The backend of an attachment that has a record: rules are looked for where they were put. Some of the families may have no
 * programs by now.
 * @throws Fault rejected when the node has no programs for any of them.
 */
export async function chooseRecorded(
  { deps }: Pick<Means, "deps">,
  wanted: readonly Family[],
  backend: Backend,
): Promise<Chosen> {
  const decided = { backend, reason: "as recorded" };
  return { choice: await equip(openPrograms(deps), decided, wanted), free: false };
}

/**
 * Chooses where nothing is known of the attachment: there are programs for the families that are required.
 * @throws Fault rejected when there are none, or none that work; try-again when that is not known.
 */
export async function chooseFor(means: Means, wanting: Wanting): Promise<Chosen> {
  const { wanted, required } = wanting;
  const programs = openPrograms(means.deps);
  const { backend: mode } = means.settings;
  if (mode === "plain") {
    return {
      choice: requireTools(await equipPlain(programs, wanted, required), wanting),
      free: false,
    };
  }
  if (mode === "nft" || mode === "legacy") {
    const decided = { backend: mode, reason: "the conf's iptables-mode", required };
    return { choice: requireTools(await equip(programs, decided, wanted), wanting), free: false };
  }
  return { choice: await equipFreely(programs, await decide(means, wanting), wanting), free: true };
}

function requireTools(choice: BackendChoice, { wanted, required }: Wanting): BackendChoice {
  for (const family of wanted) if (required.includes(family)) toolsFor(choice, family);
  return choice;
}

// What was decided may have been for pods of other families: where it has no programs for this one, the other may.
async function equipFreely(
  programs: Programs,
  decided: Decision,
  wanting: Wanting,
): Promise<BackendChoice> {
  const { backend, reason } = decided;
  const { wanted, required } = wanting;
  try {
    const first = { backend, reason, required };
    return requireTools(await equip(programs, first, wanted), wanting);
  } catch (error) {
    const other = { than: backend, reason: `no programs of ${backend} for all` };
    const found = await equipOther(programs, other, wanting);
    // Nor has another; this error says what the node was found to use.
    if (found === undefined) throw error;
    return found;
  }
}

/** What detection, and trials of backends, work with. */
export function detectingOf(means: Means): Detecting {
  const { deps, remainingMs } = means;
  return {
    client: makeClient(deps),
    programs: openPrograms(deps),
    remainingMs,
    sleep: deps.clock.sleep,
  };
}

// Once a boot. What was decided without a hint is asked of the hints again until it has been used: on a node that is
// starting, the first pods may be here before the kubelet has made its chains. What was decided without seeing all of them,
// until all have been seen.
async function decide(means: Means, { wanted, required }: Wanting): Promise<Decision> {
  const known = means.memory.read();
  const { decision } = known;
  if (decision?.provisional === false && decision.incomplete !== true) return decision;
  const detecting = detectingOf(means);
  const hint = await findHint(detecting);
  const found =
    hint.decision ??
    (decision === undefined
      ? decisionOfTrial(
          await tryBackends(detecting, {
            rulesets: means.settings.profile.trialRulesets(wanted),
            required,
          }),
          hint.unseen,
        )
      : lookedAgain(known, decision, hint));
  if (hint.unseen.length > 0) {
    means.log.warn(
      { unseen: hint.unseen },
      "the kubelet's hint chains could not all be looked for",
    );
  }
  if (JSON.stringify(found) === JSON.stringify(decision)) return found;
  means.memory.keep({ ...known, decision: found });
  means.log[found.doubtful === true ? "warn" : "info"]({ ...found }, "backend detected");
  return found;
}

// No hint this time either: what was decided holds, for good where all was seen and pods have been set by it.
function lookedAgain(known: Knowledge, decision: Decision, { unseen }: Hint): Decision {
  if (unseen.length > 0) return decision;
  const { backend, reason, doubtful } = decision;
  const isUsed = known.proven.some((proof) => proof.backend === backend);
  return {
    backend,
    reason,
    provisional: decision.provisional && !(isUsed && decision.incomplete === true),
    ...(doubtful === undefined ? {} : { doubtful }),
  };
}
