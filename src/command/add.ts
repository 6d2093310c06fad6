// ADD: intent, rules, proof, record, and prevResult handed on.
import { resolve } from "node:path";
import { type AttachmentRecord, longestNameBytes, recordName } from "../attachment/record.ts";
import { CniError, errorCode } from "../cni/error.ts";
import { readPrevResult } from "../cni/result.ts";
import type { BackendChoice } from "../netfilter/choice.ts";
import { restoreJob } from "../netfilter/converge.ts";
import { planFresh } from "../netfilter/plan.ts";
import { renderRestore } from "../netfilter/restore.ts";
import type { Ruleset } from "../netfilter/table.ts";
import type { Netns } from "../netns/path.ts";
import type { Intent } from "../redirect/intent.ts";
import { buildRulesets } from "../redirect/ruleset.ts";
import { version } from "../version.ts";
import { type Attached, attachedTo } from "./attached.ts";
import { type Chosen, chooseBackend } from "./backend.ts";
import { type Call, keyOf, subjectOf, type Told } from "./call.ts";
import { setCloseWait } from "./close-wait.ts";
import { deriveIntent } from "./intent.ts";
import { named, withNetns } from "./netns.ts";
import { redirect } from "./redirect.ts";
import { type Failed, undo } from "./undo.ts";

/** Redirects the attachment. Gives ADD's stdout; throws with nothing left half-way that a DEL does not find. */
export async function add(call: Call, told: Told): Promise<string> {
  const prevResult = readPrevResult(call.network);
  await withNetns(call, named(call), async (netns) => {
    const derived = await deriveIntent(call, netns, prevResult);
    if (derived.kind === "skip") told["skipped"] = derived.reason;
    else await carryOut(call, { netns, intent: derived.intent }, told);
  });
  return prevResult.text;
}

type Work = { readonly netns: Netns; readonly intent: Intent };

async function carryOut(call: Call, work: Work, told: Told): Promise<void> {
  const { intent, netns } = work;
  const rulesets = buildRulesets(intent);
  told["families"] = intent.families;
  if (call.plugin.linkerd.simulate) {
    simulate(call, rulesets);
    return;
  }
  requireName(call);
  // Before the rules: an ADD that could not be recorded would leave rules that no DEL takes out.
  const before = recorded(call, () => {
    call.store.prepare();
    return attachedTo(call, netns);
  });
  const chosen = await chooseBackend(call, intent.families);
  // And before the record: what can never be loaded is the conf's fault.
  for (const ruleset of rulesets) restoreJob(chosen.choice, ruleset.family, planFresh(ruleset));
  const record = recordOf(call, { ...work, rulesets, choice: chosen.choice, before });
  await apply(call, { netns, rulesets, record, before, chosen }, told);
}

type Applying = {
  readonly netns: Netns;
  readonly rulesets: readonly Ruleset[];
  /** As it was written: intended. */
  readonly record: AttachmentRecord;
  readonly before: Attached;
  readonly chosen: Chosen;
};

/** How far it came. */
type Reached = { -readonly [key in "record" | "done" | "isSet"]: Failed[key] };

// The record first, as intended; then the rules and the setting; then it is made good.
async function apply(call: Call, work: Applying, told: Told): Promise<void> {
  const { netns, rulesets, before, chosen } = work;
  const reached: Reached = { record: work.record, done: undefined, isSet: false };
  const keep = (record: AttachmentRecord) => {
    recorded(call, () => call.store.write(record));
    reached.record = record;
  };
  keep(work.record);
  try {
    const isKnown = before.latest !== undefined;
    const { choice, changed, created } = await redirect(call, { netns, rulesets, isKnown }, chosen);
    reached.done = { choice, created };
    told["backend"] = choice.backend;
    told["changed"] = changed;
    const set = await setCloseWait(call, { netns, record: reached.record }, keep);
    reached.isSet = reached.record.closeWaitBefore !== undefined;
    const { backend, reason: backendReason } = choice;
    keep({ ...set, state: "applied", backend, backendReason });
  } catch (error) {
    await undo(call, { ...reached, netns, before, error });
    throw error;
  }
}

// So that whoever reads the error knows whose record it is.
function recorded<T>(call: Call, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof CniError)) throw error;
    throw new CniError(error.code, `${subjectOf(call)} cannot be recorded: ${error.message}`, {
      details: error.details,
      cause: error,
    });
  }
}

// Only the network's name has no bound of its own.
function requireName(call: Call): void {
  const excess = Buffer.byteLength(recordName(keyOf(call))) - longestNameBytes;
  if (excess <= 0) return;
  throw new CniError(errorCode.invalidConf, "network name is too long", {
    details: `by ${excess} characters, for a file that is named after network, container and interface`,
  });
}

type Intended = Work & {
  readonly rulesets: readonly Ruleset[];
  readonly choice: BackendChoice;
  readonly before: Attached;
};

function recordOf(call: Call, intended: Intended): AttachmentRecord {
  const { netns, intent, rulesets, choice, before } = intended;
  const { path, device, inode } = netns;
  const { deps, store } = call;
  const { closeWaitBefore } = before;
  const { boot, sinceBootMs } = store.moment();
  return {
    format: 1,
    state: "intended",
    ...keyOf(call),
    pod: call.pod,
    netns: { path: resolve(path), device, inode },
    ...(boot === "" ? {} : { boot, sinceBootMs }),
    ...(closeWaitBefore === undefined ? {} : { closeWaitBefore }),
    intent,
    rulesets: rulesets.map(({ family, chains }) => ({
      family,
      chains: chains.map(({ rules, ...own }) => ({ ...own, rules: [...rules] })),
    })),
    backend: choice.backend,
    backendReason: choice.reason,
    time: new Date(deps.clock.epochMs()).toISOString(),
    version,
  };
}

function simulate(call: Call, rulesets: readonly Ruleset[]): void {
  for (const ruleset of rulesets) {
    const restore = renderRestore(planFresh(ruleset));
    call.log.info({ family: ruleset.family, restore }, "simulate: nothing is written");
  }
}
