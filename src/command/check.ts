// CHECK: is the attachment redirected as was intended? Reads both backends, changes nothing.
import type { AttachmentRecord } from "../attachment/record.ts";
import { CniError, errorCode } from "../cni/error.ts";
import { readPrevResult } from "../cni/result.ts";
import { ownChains } from "../mesh/linkerd.ts";
import { type BackendChoice, chooseBackend, useBackend } from "../netfilter/backend.ts";
import type { Job, Outcome } from "../netfilter/client.ts";
import { compare, type Drift, renderDrift } from "../netfilter/compare.ts";
import { readTable } from "../netfilter/converge.ts";
import {
  type Backend,
  backends,
  type Family,
  holdsAny,
  type Ruleset,
  type Table,
} from "../netfilter/table.ts";
import { findTools, type Tools } from "../netfilter/tools.ts";
import type { Netns } from "../netns/path.ts";
import { closeWaitSetting, readSysctl } from "../netns/sysctl.ts";
import { buildRulesets } from "../redirect/ruleset.ts";
import { modeOf } from "./add.ts";
import { type Call, keyOf, lookingOf, sessionOf, subjectOf, type Told } from "./call.ts";
import { deriveIntent } from "./intent.ts";

/**
 * Compares the netns with the attachment's record, or, where there is none, with what ADD would make of the conf.
 * @throws CniError 100 with one line a drift; 11 when a table could not be read, which is no drift.
 */
export async function check(call: Call, told: Told): Promise<string> {
  const { request, deps } = call;
  const netns = deps.openNetns(request.netns, request.netnsOverride);
  try {
    const wanted = await expected(call, netns, told);
    if (wanted !== undefined) await verify(call, netns, wanted);
  } finally {
    deps.closeNetns(netns);
  }
  return "";
}

type Expected = {
  readonly rulesets: readonly Ruleset[];
  readonly choice: BackendChoice;
  readonly closeWaitSeconds: number | undefined;
};

// Nothing is expected of a pod that ADD left alone.
async function expected(call: Call, netns: Netns, told: Told): Promise<Expected | undefined> {
  const record = recordFor(call, netns);
  const derived = record ?? (await derive(call, netns));
  if (derived === undefined) return undefined;
  const { intent, rulesets } = derived;
  const choice =
    record === undefined
      ? chooseBackend(modeOf(call.plugin.linkerd), intent.families, call.deps.find)
      : useBackend(record.backend, intent.families, call.deps.find);
  told["families"] = intent.families;
  told["backend"] = choice.backend;
  return { rulesets, choice, closeWaitSeconds: intent.closeWaitSeconds };
}

async function derive(
  call: Call,
  netns: Netns,
): Promise<(Pick<AttachmentRecord, "intent"> & Pick<Expected, "rulesets">) | undefined> {
  const derived = await deriveIntent(call, netns, readPrevResult(call.network));
  if (derived.kind === "skip") return undefined;
  const { containerId } = call.request;
  call.log.warn({ containerId }, "no record of this attachment; checking against the conf");
  return { intent: derived.intent, rulesets: buildRulesets(derived.intent) };
}

/** The attachment's record, if it is about this very netns: after a reboot or a reused id it is about another. */
export function recordFor(call: Call, netns: Netns): AttachmentRecord | undefined {
  const record = call.store.read(keyOf(call));
  const same = record?.netns.inode === netns.inode && record.netns.device === netns.device;
  return same ? record : undefined;
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

async function observe(call: Call, netns: Netns, { rulesets, choice }: Expected): Promise<Drift[]> {
  const looks = rulesets.flatMap((ruleset) =>
    backends.flatMap((backend): Look[] => {
      const tools = toolsToLook(call, ruleset.family, { backend, choice });
      if (tools === undefined) return [];
      return [{ ruleset, job: { family: ruleset.family, backend, tools, restore: "" } }];
    }),
  );
  const { client, remainingMs } = sessionOf(call, netns, choice);
  const outcomes = await client(
    netns,
    looks.map(({ job }) => job),
    remainingMs(),
  );
  return looks.flatMap(({ ruleset }, i) => {
    const outcome = outcomes[i];
    return outcome === undefined ? [] : driftsIn(outcome, ruleset, choice.backend);
  });
}

type Look = { readonly ruleset: Ruleset; readonly job: Job };

type Looking = { readonly backend: Backend; readonly choice: BackendChoice };

function toolsToLook(call: Call, family: Family, looking: Looking): Tools | undefined {
  const { backend, choice } = looking;
  if (backend === choice.backend) return choice.tools.get(family);
  return findTools(call.deps.find, backend, family);
}

function driftsIn(outcome: Outcome, ruleset: Ruleset, chosen: Backend): Drift[] {
  const { backend, tools, family } = outcome.job;
  const table = readTable(outcome);
  if (!(table instanceof Error)) {
    return backend === chosen ? compare(ruleset, table) : otherBackend(ruleset, table, backend);
  }
  // The other backend need not work on this node: then nothing of ours can be in it.
  if (backend !== chosen) return [];
  throw new CniError(
    errorCode.tryAgainLater,
    `${tools.save} (${backend}, ${family}) could not show the nat table: ${table.message}`,
    { details: "whether the redirect is in place is not known" },
  );
}

function otherBackend(ruleset: Ruleset, table: Table, backend: Backend): Drift[] {
  if (!holdsAny(table, ownChains)) return [];
  const found = `own chains in ${backend} as well: the backend programmed last takes the traffic`;
  return [{ kind: "other-backend", family: ruleset.family, chain: "", expected: "", found }];
}

function drifted(call: Call, backend: Backend, lines: readonly string[]): CniError {
  const count = lines.length === 1 ? "1 drift" : `${lines.length} drifts`;
  return new CniError(
    errorCode.drift,
    `${subjectOf(call)} is not redirected as intended: ${count} (${backend})`,
    { details: lines.join("\n") },
  );
}
