// CHECK: is the attachment redirected as was intended? Reads both backends, changes nothing.
import { type AttachmentRecord, intentOf, profileOf } from "../attachment/record.ts";
import { CniError, errorCode } from "../cni/error.ts";
import { readPrevResult } from "../cni/result.ts";
import { familiesOf, type Setting } from "../mesh/profile.ts";
import { renderDrift } from "../netfilter/compare.ts";
import type { Backend, Family, Ruleset } from "../netfilter/table.ts";
import type { Netns } from "../netns/path.ts";
import { readSysctl } from "../netns/sysctl.ts";
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

type Expected = Wanted & { readonly settings: readonly Setting[] };

// Nothing is expected of a pod that ADD left alone, or only simulated.
async function expected(call: Call, netns: Netns, told: Told): Promise<Expected | undefined> {
  const record = recordFor(call, netns);
  const derived = record === undefined ? await derive(call, netns) : recorded(call, record);
  if (derived === undefined) return undefined;
  const { families: wanted, optional } = derived;
  const required = wanted.filter((family) => !optional.includes(family));
  const { choice } =
    record === undefined
      ? await chooseFor(call, { wanted, required })
      : await chooseBackend(call, wanted, record);
  told["families"] = wanted;
  told["backend"] = choice.backend;
  const isThere = ({ family }: Ruleset) => choice.tools.has(family) || !optional.includes(family);
  return {
    ...derived,
    rulesets: derived.rulesets.filter(isThere),
    choice,
  };
}

type Derived = Omit<Expected, "choice"> & { readonly families: readonly Family[] };

function recorded(call: Call, record: AttachmentRecord): Derived {
  const { intent, rulesets } = record;
  return {
    families: intent.families,
    rulesets,
    standFor: profileOf(record).standFor,
    settings: intentOf(record)?.settings ?? [],
    open: openFamilies(call, record),
    optional: [],
  };
}

async function derive(call: Call, netns: Netns): Promise<Derived | undefined> {
  const derived = await deriveIntent(call, readPrevResult(call.network));
  if (derived.kind === "skip" || call.settings.simulate) return undefined;
  const { containerId } = call.request;
  call.log.warn({ containerId }, "no record of this attachment; checking against the conf");
  const { intent, optional } = await familiesNow(call, { ...derived, netns });
  const { rulesets, settings } = intent;
  const { standFor } = call.settings.profile;
  return { families: familiesOf(intent), rulesets, standFor, settings, open: [], optional };
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
    ...(await verifySettings(call, netns, wanted)),
  ];
  if (lines.length > 0) throw drifted(call, wanted.choice.backend, lines);
}

async function verifySettings(call: Call, netns: Netns, wanted: Expected): Promise<string[]> {
  const lines: string[] = [];
  for (const { name, value } of wanted.settings) {
    const found = await readSysctl(netns, name, lookingOf(call));
    if (found !== value) lines.push(`changed-sysctl (${name}): expected ${value}; found ${found}`);
  }
  return lines;
}

function drifted(call: Call, backend: Backend, lines: readonly string[]): CniError {
  const count = lines.length === 1 ? "1 drift" : `${lines.length} drifts`;
  return new CniError(
    errorCode.drift,
    `${subjectOf(call)} is not redirected as intended: ${count} (${backend})`,
    { details: fewOf(lines).join("\n") },
  );
}
