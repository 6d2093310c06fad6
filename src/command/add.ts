// ADD: intent, rules, proof, record, and prevResult handed on.
import type { AttachmentRecord } from "../attachment/record.ts";
import { type PrevResult, readPrevResult } from "../cni/result.ts";
import type { LinkerdConf } from "../mesh/conf.ts";
import { intentOfConf } from "../mesh/values.ts";
import { type BackendMode, chooseBackend } from "../netfilter/backend.ts";
import { converge, type Session } from "../netfilter/converge.ts";
import { planFresh } from "../netfilter/plan.ts";
import { renderRestore } from "../netfilter/restore.ts";
import type { Ruleset } from "../netfilter/table.ts";
import { readAddresses } from "../netns/addresses.ts";
import type { Netns } from "../netns/path.ts";
import { familiesOf, type Intent } from "../redirect/intent.ts";
import { buildRulesets } from "../redirect/ruleset.ts";
import { version } from "../version.ts";
import { type Call, keyOf, sessionOf, type Told } from "./call.ts";

/** Redirects the attachment. Gives ADD's stdout; throws with nothing left half-way. */
export async function add(call: Call, told: Told): Promise<string> {
  const { request, plugin, deps } = call;
  const prevResult = readPrevResult(call.network);
  const netns = deps.openNetns(request.netns, request.netnsOverride);
  try {
    const intent = await deriveIntent(call, netns, prevResult);
    const rulesets = buildRulesets(intent);
    told["families"] = intent.families;
    if (plugin.linkerd.simulate) simulate(call, rulesets);
    else await redirect(call, { netns, intent, rulesets }, told);
  } finally {
    deps.closeNetns(netns);
  }
  return prevResult.text;
}

/** What the attachment's rules shall be, from the conf and the pod's addresses. */
export async function deriveIntent(
  call: Call,
  netns: Netns,
  prevResult: PrevResult,
): Promise<Intent> {
  const { linkerd } = call.plugin;
  // Values first: a conf that cannot be meant is reported before anything runs.
  const draft = intentOfConf(linkerd, ["ipv4"]);
  const addresses =
    prevResult.addresses.length > 0 ? prevResult.addresses : await addressesIn(call, netns);
  return { ...draft, families: familiesOf(addresses, linkerd.ipv6) };
}

/** How the conf names the backend. */
export function modeOf(linkerd: LinkerdConf): BackendMode {
  return linkerd["iptables-mode"] || "auto";
}

type Work = {
  readonly netns: Netns;
  readonly intent: Intent;
  readonly rulesets: readonly Ruleset[];
};

async function redirect(call: Call, work: Work, told: Told): Promise<void> {
  const { netns, intent, rulesets } = work;
  const choice = chooseBackend(modeOf(call.plugin.linkerd), intent.families, call.deps.find);
  told["backend"] = choice.backend;
  const session = sessionOf(call, netns, choice);
  told["changed"] = await converge(session, rulesets);
  call.store.write(recordOf(call, work, session));
}

function recordOf(call: Call, work: Work, { choice }: Session): AttachmentRecord {
  const { path, device, inode } = work.netns;
  return {
    format: 1,
    ...keyOf(call),
    pod: call.pod,
    netns: { path, device, inode },
    intent: work.intent,
    rulesets: work.rulesets.map(({ family, chains }) => ({
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

function addressesIn(call: Call, netns: Netns): Promise<string[]> {
  const { exec, find, path } = call.deps;
  return readAddresses(netns, { exec, find, path, timeoutMs: call.remainingMs() });
}
