// ADD: intent, rules, proof, record, and prevResult handed on.
import { resolve } from "node:path";
import { type AttachmentRecord, longestNameBytes, recordName } from "../attachment/record.ts";
import { CniError, errorCode } from "../cni/error.ts";
import { readPrevResult } from "../cni/result.ts";
import { Fault } from "../fault.ts";
import { familiesOf, type Intent, narrowed } from "../mesh/profile.ts";
import { jobFor } from "../netfilter/converge/job.ts";
import type { Left } from "../netfilter/converge/left-out.ts";
import type { BackendChoice } from "../netfilter/iptables/tools.ts";
import { renderRestore } from "../netfilter/restore.ts";
import type { Family } from "../netfilter/table.ts";
import { freshTransaction } from "../netfilter/transaction.ts";
import type { Netns } from "../netns/path.ts";
import { type Chosen, chooseFor } from "../node/backend.ts";
import { type Attached, attachedTo } from "../upkeep/attached.ts";
import { familiesNow, tellFamilies, withoutLeft } from "../upkeep/families.ts";
import { named as namedNetns, withNetns } from "../upkeep/netns.ts";
import { deriveIntent } from "../upkeep/pod/intent.ts";
import { redirect } from "../upkeep/redirect.ts";
import { setSettings } from "../upkeep/settings.ts";
import { type Failed, undo } from "../upkeep/undo.ts";
import { version } from "../version.ts";
import { type Call, keyOf, subjectOf, type Told } from "./call.ts";

/** Redirects the attachment. Gives ADD's stdout; throws with nothing left half-way that a DEL does not find. */
export async function add(call: Call, told: Told): Promise<string> {
  const prevResult = readPrevResult(call.network);
  await withNetns(call, namedNetns(call), async (netns) => {
    const derived = await deriveIntent(call, prevResult);
    if (derived.kind === "skip") told["skipped"] = derived.reason;
    else await carryOut(call, { ...derived, netns }, told);
  });
  return prevResult.text;
}

type Work = {
  readonly netns: Netns;
  readonly intent: Intent;
  /** The families that prevResult names: they must be redirected. */
  readonly named: readonly Family[];
};

async function carryOut(call: Call, work: Work, told: Told): Promise<void> {
  const { intent, named } = work;
  const wanted = familiesOf(intent);
  told["families"] = wanted;
  if (call.settings.simulate) {
    await simulate(call, work, told);
    return;
  }
  requireName(call);
  // Before the rules: an ADD that could not be recorded would leave rules that no DEL takes out.
  const before = recorded(call, () => {
    call.store.prepare();
    return attachedTo(call, work.netns);
  });
  const chosen = await chooseFor(call, { wanted, required: named });
  const equipped = withEquipped(intent, chosen);
  // And before the record: what can never be loaded is the conf's fault.
  for (const ruleset of equipped.rulesets) {
    jobFor(chosen.choice, ruleset, freshTransaction(ruleset));
  }
  const record = recordOf(call, { ...work, intent: equipped, choice: chosen.choice, before });
  await apply(call, { ...work, record, before, chosen }, told);
}

// What there are no programs for is not written.
function withEquipped(intent: Intent, { choice }: Chosen): Intent {
  return narrowed(intent, (family) => choice.tools.has(family));
}

type Applying = Work & {
  /** As it was written: intended. */
  readonly record: AttachmentRecord;
  readonly before: Attached;
  readonly chosen: Chosen;
};

/** How far it came. */
type Reached = { -readonly [key in "record" | "done" | "isSet"]: Failed[key] };

// The record first, as intended; then the rules and the setting; then it is made good.
async function apply(call: Call, work: Applying, told: Told): Promise<void> {
  const { netns, intent, named, before, chosen } = work;
  const reached: Reached = { record: work.record, done: undefined, isSet: false };
  const took: boolean[] = [];
  const keep = (record: AttachmentRecord) => {
    recorded(call, () => call.store.write(record));
    reached.record = record;
  };
  keep(work.record);
  try {
    const redirecting = {
      netns,
      rulesets: intent.rulesets,
      required: named,
      isKnown: before.latest !== undefined,
      tookBack: (isAsBefore: boolean) => void took.push(isAsBefore),
    };
    const done = await redirect(call, redirecting, chosen);
    const { choice, created, left } = done;
    reached.done = { choice, created };
    const applied = withoutLeft(intent, left);
    told["families"] = familiesOf(applied);
    told["backend"] = choice.backend;
    told["changed"] = done.changed;
    tellFamilies(call, done);
    const set = await setSettings(call, { netns, record: reached.record }, keep);
    reached.isSet = reached.record.closeWaitBefore !== undefined;
    keep({ ...set, state: "applied", ...appliedTo(applied, choice), ...openOf(left) });
  } catch (error) {
    const isAsBefore = reached.done === undefined && took.length > 0 && took.every(Boolean);
    await undo(call, { ...reached, netns, before, error, isAsBefore });
    throw error;
  }
}

// What a record says of the rules themselves.
function appliedTo(
  intent: Intent,
  { backend, reason }: BackendChoice,
): Pick<AttachmentRecord, "intent" | "rulesets" | "backend" | "backendReason"> {
  return {
    intent: { families: familiesOf(intent), ...intent.words },
    rulesets: [...intent.rulesets],
    backend,
    backendReason: reason,
  };
}

function openOf(left: readonly Left[]): Pick<AttachmentRecord, "open"> {
  return left.length === 0 ? {} : { open: left.map(({ family }) => family) };
}

// So that whoever reads the error knows whose record it is.
function recorded<T>(call: Call, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    throw new Fault(error.kind, `${subjectOf(call)} cannot be recorded: ${error.message}`, {
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

type Intended = Pick<Work, "netns" | "intent"> & {
  readonly choice: BackendChoice;
  readonly before: Attached;
};

function recordOf(call: Call, intended: Intended): AttachmentRecord {
  const { netns, intent, choice, before } = intended;
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
    ...appliedTo(intent, choice),
    time: new Date(deps.clock.epochMs()).toISOString(),
    version,
  };
}

async function simulate(call: Call, work: Work, told: Told): Promise<void> {
  const { intent } = await familiesNow(call, work);
  told["families"] = familiesOf(intent);
  for (const ruleset of intent.rulesets) {
    const restore = renderRestore(freshTransaction(ruleset));
    call.log.info({ family: ruleset.family, restore }, "simulate: nothing is written");
  }
}
