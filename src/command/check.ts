// CHECK: is the attachment redirected as was intended? Reads both backends, changes nothing.
import type { AttachmentRecord } from "../attachment/record.ts";
import { CniError, errorCode } from "../cni/error.ts";
import { readPrevResult } from "../cni/result.ts";
import { renderDrift } from "../netfilter/compare.ts";
import type { Backend } from "../netfilter/table.ts";
import type { Netns } from "../netns/path.ts";
import { closeWaitSetting, readSysctl } from "../netns/sysctl.ts";
import { buildRulesets } from "../redirect/ruleset.ts";
import { attachedTo } from "./attached.ts";
import { chooseBackend } from "./backend.ts";
import { type Call, lookingOf, subjectOf, type Told } from "./call.ts";
import { deriveIntent } from "./intent.ts";
import { named, withNetns } from "./netns.ts";
import { observe, type Wanted } from "./observe.ts";

/**
 * Compares the netns with the attachment's record, or, where there is none, with what ADD would make of the conf.
 * @throws CniError 100 with one line a drift; 11 when a table could not be read, which is no drift.
 */
export async function check(call: Call, told: Told): Promise<string> {
  await withNetns(call, named(call), async (netns) => {
    const wanted = await expected(call, netns, told);
    if (wanted !== undefined) await verify(call, netns, wanted);
  });
  return "";
}

type Expected = Wanted & { readonly closeWaitSeconds: number | undefined };

// Nothing is expected of a pod that ADD left alone, or only simulated.
async function expected(call: Call, netns: Netns, told: Told): Promise<Expected | undefined> {
  const record = recordFor(call, netns);
  const derived = record ?? (await derive(call, netns));
  if (derived === undefined) return undefined;
  const { intent, rulesets } = derived;
  const { choice } = await chooseBackend(call, intent.families, record);
  told["families"] = intent.families;
  told["backend"] = choice.backend;
  return { rulesets, choice, closeWaitSeconds: intent.closeWaitSeconds };
}

async function derive(
  call: Call,
  netns: Netns,
): Promise<(Pick<AttachmentRecord, "intent"> & Pick<Wanted, "rulesets">) | undefined> {
  const derived = await deriveIntent(call, netns, readPrevResult(call.network));
  if (derived.kind === "skip" || call.plugin.linkerd.simulate) return undefined;
  const { containerId } = call.request;
  call.log.warn({ containerId }, "no record of this attachment; checking against the conf");
  return { intent: derived.intent, rulesets: buildRulesets(derived.intent) };
}

/**
 * The record that the netns is held against: the latest of the pod's attachments in it, whose rules are those of all. None
 * where this attachment has none that is about this very netns.
 */
export function recordFor(call: Call, netns: Netns): AttachmentRecord | undefined {
  const { own, latest } = attachedTo(call, netns);
  return own === undefined ? undefined : latest;
}

async function verify(call: Call, netns: Netns, wanted: Expected): Promise<void> {
  const drifts = await observe(call, netns, wanted);
  const lines = [...drifts.map(renderDrift), ...(await verifySetting(call, netns, wanted))];
  if (lines.length > 0) throw drifted(call, wanted.choice.backend, lines);
}

async function verifySetting(call: Call, netns: Netns, wanted: Expected): Promise<string[]> {
  const { closeWaitSeconds } = wanted;
  if (closeWaitSeconds === undefined) return [];
  const found = await readSysctl(netns, closeWaitSetting, lookingOf(call));
  if (found === String(closeWaitSeconds)) return [];
  return [`changed-sysctl (${closeWaitSetting}): expected ${closeWaitSeconds}; found ${found}`];
}

function drifted(call: Call, backend: Backend, lines: readonly string[]): CniError {
  const count = lines.length === 1 ? "1 drift" : `${lines.length} drifts`;
  return new CniError(
    errorCode.drift,
    `${subjectOf(call)} is not redirected as intended: ${count} (${backend})`,
    { details: lines.join("\n") },
  );
}
