// ADD: intent, rules, proof, record, and prevResult handed on.
import { type AttachmentRecord, longestNameBytes, recordName } from "../attachment/record.ts";
import { CniError, errorCode } from "../cni/error.ts";
import { readPrevResult } from "../cni/result.ts";
import type { BackendChoice } from "../netfilter/choice.ts";
import { planFresh } from "../netfilter/plan.ts";
import { renderRestore } from "../netfilter/restore.ts";
import type { Ruleset } from "../netfilter/table.ts";
import type { Netns } from "../netns/path.ts";
import { closeWaitSetting, writeSysctl } from "../netns/sysctl.ts";
import type { Intent } from "../redirect/intent.ts";
import { buildRulesets } from "../redirect/ruleset.ts";
import { version } from "../version.ts";
import { type Call, keyOf, lookingOf, type Told } from "./call.ts";
import { deriveIntent } from "./intent.ts";
import { redirect } from "./redirect.ts";

/** Redirects the attachment. Gives ADD's stdout; throws with nothing left half-way. */
export async function add(call: Call, told: Told): Promise<string> {
  const { request, deps } = call;
  const prevResult = readPrevResult(call.network);
  const netns = deps.openNetns(request.netns, request.netnsOverride);
  try {
    const derived = await deriveIntent(call, netns, prevResult);
    if (derived.kind === "skip") told["skipped"] = derived.reason;
    else await carryOut(call, { netns, intent: derived.intent }, told);
  } finally {
    deps.closeNetns(netns);
  }
  return prevResult.text;
}

type Work = { readonly netns: Netns; readonly intent: Intent };

async function carryOut(call: Call, work: Work, told: Told): Promise<void> {
  const { netns, intent } = work;
  const rulesets = buildRulesets(intent);
  told["families"] = intent.families;
  if (call.plugin.linkerd.simulate) {
    simulate(call, rulesets);
    return;
  }
  // Before the rules: an ADD that could not be recorded would leave rules that no DEL takes out.
  requireName(call);
  call.store.prepare();
  const { choice, changed } = await redirect(call, { netns, rulesets });
  told["backend"] = choice.backend;
  told["changed"] = changed;
  if (intent.closeWaitSeconds !== undefined) {
    // After the rules: they load conntrack, which has the setting.
    const setting = { name: closeWaitSetting, value: intent.closeWaitSeconds };
    await writeSysctl(netns, setting, lookingOf(call));
  }
  call.store.write(recordOf(call, { ...work, rulesets, choice }));
}

// Only the network's name has no bound of its own.
function requireName(call: Call): void {
  const excess = Buffer.byteLength(recordName(keyOf(call))) - longestNameBytes;
  if (excess <= 0) return;
  throw new CniError(errorCode.invalidConf, "network name is too long", {
    details: `by ${excess} characters, for a file that is named after network, container and interface`,
  });
}

type Done = Work & { readonly rulesets: readonly Ruleset[]; readonly choice: BackendChoice };

function recordOf(call: Call, { netns, intent, rulesets, choice }: Done): AttachmentRecord {
  const { path, device, inode } = netns;
  return {
    format: 1,
    ...keyOf(call),
    pod: call.pod,
    netns: { path, device, inode },
    intent,
    rulesets: rulesets.map(({ family, chains }) => ({
      family,
      chains: chains.map(({ rules, ...own }) => ({ ...own, rules: [...rules] })),
    })),
    backend: choice.backend,
    backendReason: choice.reason,
    time: new Date(call.deps.clock.epochMs()).toISOString(),
    version,
  };
}

function simulate(call: Call, rulesets: readonly Ruleset[]): void {
  for (const ruleset of rulesets) {
    const restore = renderRestore(planFresh(ruleset));
    call.log.info({ family: ruleset.family, restore }, "simulate: nothing is written");
  }
}
