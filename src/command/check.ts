// CHECK: is the attachment redirected as was intended? Reads both backends, changes nothing.
import type { AttachmentRecord } from "../attachment/record.ts";
import { CniError, errorCode } from "../cni/error.ts";
import { readPrevResult } from "../cni/result.ts";
import { buildRulesets } from "../mesh/linkerd/ruleset.ts";
import { renderDrift } from "../netfilter/compare.ts";
import type { Backend, Ruleset } from "../netfilter/table.ts";
import type { Netns } from "../netns/path.ts";
import { closeWaitSetting, readSysctl } from "../netns/sysctl.ts";
import { chooseBackend, chooseFor } from "../node/backend.ts";
import { fewOf } from "../text/telling.ts";
import { attachedTo } from "../upkeep/attached.ts";
import { familiesNow, openFamilies, renderSpoken } from "../upkeep/families.ts";
import { named, withNetns } from "../upkeep/netns.ts";
import { observe, type Wanted } from "../upkeep/observe.ts";
import { deriveIntent } from "../upkeep/pod/intent.ts";
import { type Call, lookingOf, subjectOf, type Told } from "./call.ts";

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
  const derived = record === undefined ? await derive(call, netns) : recorded(call, record);
  if (derived === undefined) return undefined;
  const { intent, optional } = derived;
  const wanted = intent.families;
  const required = wanted.filter((family) => !optional.includes(family));
  const { choice } =
    record === undefined
      ? await chooseFor(call, { wanted, required })
      : await chooseBackend(call, wanted, record);
  told["families"] = intent.families;
  told["backend"] = choice.backend;
  const isThere = ({ family }: Ruleset) => choice.tools.has(family) || !optional.includes(family);
  return {
    ...derived,
    rulesets: derived.rulesets.filter(isThere),
    choice,
    closeWaitSeconds: intent.closeWaitSeconds,
  };
}

type Derived = Pick<AttachmentRecord, "intent"> & Pick<Expected, "rulesets" | "open" | "optional">;

function recorded(call: Call, record: AttachmentRecord): Derived {
  const { intent, rulesets } = record;
  return { intent, rulesets, open: openFamilies(call, record), optional: [] };
}

async function derive(call: Call, netns: Netns): Promise<Derived | undefined> {
  const derived = await deriveIntent(call, readPrevResult(call.network));
  if (derived.kind === "skip" || call.plugin.linkerd.simulate) return undefined;
  const { containerId } = call.request;
  call.log.warn({ containerId }, "no record of this attachment; checking against the conf");
  const { families, optional } = await familiesNow(call, { ...derived, netns });
  const intent = { ...derived.intent, families };
  return { intent, rulesets: buildRulesets(intent), open: [], optional };
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
  const { drifts, presence } = await observe(call, netns, wanted);
  const lines = [
    ...drifts.map(renderDrift),
    ...renderSpoken(wanted.open, presence),
    ...(await verifySetting(call, netns, wanted)),
  ];
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
    { details: fewOf(lines).join("\n") },
  );
}
