// ADD: what the pod wishes for, brought about, and prevResult handed on.
import { readPrevResult } from "../cni/result.ts";
import { familiesOf } from "../mesh/profile.ts";
import { renderRestore } from "../netfilter/restore.ts";
import { freshTransaction } from "../netfilter/transaction.ts";
import type { Netns } from "../netns/path.ts";
import { familiesNow, type Plan } from "../upkeep/families.ts";
import { hearing } from "../upkeep/heard.ts";
import { enter } from "../upkeep/netns.ts";
import { deriveIntent } from "../upkeep/pod/intent.ts";
import { redirect } from "../upkeep/redirect.ts";
import { askingOf, type Call, type Told } from "./call.ts";

/** Redirects the attachment. Gives ADD's stdout; throws with nothing left half-way that a DEL does not find. */
export async function add(call: Call, told: Told): Promise<string> {
  const prevResult = readPrevResult(call.network);
  const { log, warnings: warned } = hearing(call.log);
  await enter(call, call.subject, async (here) => {
    const derived = await deriveIntent(askingOf({ ...call, log }), prevResult);
    if (derived.kind === "skip") {
      told.skipped = derived.reason;
      return;
    }
    told.families = familiesOf(derived.intent);
    if (call.settings.simulate) await simulate(call, here.netns, { plan: derived, told });
    else {
      const onRules = (redirected: Told) => void Object.assign(told, redirected);
      await redirect(call, here, { ...derived, warned, onRules });
    }
  });
  return prevResult.text;
}

type Simulating = { readonly plan: Plan; readonly told: Told };

async function simulate(call: Call, netns: Netns, { plan, told }: Simulating): Promise<void> {
  const { intent } = await familiesNow(call, netns, plan);
  told.families = familiesOf(intent);
  for (const ruleset of intent.rulesets) {
    const restore = renderRestore(freshTransaction(ruleset));
    call.log.info({ family: ruleset.family, restore }, "simulate: nothing is written");
  }
}
