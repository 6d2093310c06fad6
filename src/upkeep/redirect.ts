// Redirects one attachment: first it is written down what is intended, then come the rules, then the kernel settings, and in
// the end what was done is written down. What fails is undone. Serves ADD, and repair.
import type { AttachmentRecord } from "../attachment/record.ts";
import { familiesOf, type Intent, narrowed } from "../mesh/profile.ts";
import { jobFor } from "../netfilter/converge/job.ts";
import type { BackendChoice } from "../netfilter/iptables/tools.ts";
import type { Backend, Family } from "../netfilter/table.ts";
import { freshTransaction } from "../netfilter/transaction.ts";
import { type Chosen, chooseFor, chooseRecorded } from "../node/backend.ts";
import { type Applied, applyRules } from "./apply.ts";
import { type Attached, attachedTo } from "./attached.ts";
import { type Plan, tellFamilies, withoutLeft } from "./families.ts";
import { locked } from "./locked.ts";
import { setSettings } from "./settings.ts";
import type { Entered, Task } from "./task.ts";
import { type Failed, undo } from "./undo.ts";
import { appliedRecord, intendedRecord, recording, requireName } from "./writing.ts";

export type Redirecting = Plan & {
  /** The backend that the attachment's rules are in, and why; not given: it is chosen. */
  readonly recorded?: Pick<BackendChoice, "backend" | "reason">;
  /** Told when the rules are in place: kernel settings and record may fail yet. */
  readonly onRules?: (redirected: Redirected) => void;
};

/** What the netns has now. */
export type Redirected = {
  readonly families: readonly Family[];
  readonly backend: Backend;
  /** The families that were written to. */
  readonly changed: readonly Family[];
};

/**
 * Ends with rules, settings and record as planned, whatever was there before.
 * @throws Fault or BatchError, with nothing left half-way that a clean() does not find; Fault try-again also while another process
 * works in the netns.
 */
export async function redirect(task: Task, here: Entered, plan: Redirecting): Promise<Redirected> {
  requireName(here.key);
  // Before the rules: a redirect that could not be recorded would leave rules that nobody takes out.
  recording(here, () => task.store.prepare());
  return await locked(task, here, () => bringAbout(task, here, plan));
}

async function bringAbout(task: Task, here: Entered, plan: Redirecting): Promise<Redirected> {
  const before = recording(here, () => attachedTo(task, here));
  const chosen = await choose(task, plan);
  // What there are no programs for is not written.
  const intent = narrowed(plan.intent, (family) => chosen.choice.tools.has(family));
  // And before the record: what can never be loaded is the conf's fault.
  for (const ruleset of intent.rulesets) {
    jobFor(chosen.choice, ruleset, freshTransaction(ruleset));
  }
  return await carryOut(task, here, { ...plan, intent, before, chosen });
}

async function choose(task: Task, { intent, required, recorded }: Redirecting): Promise<Chosen> {
  const wanted = familiesOf(intent);
  if (recorded === undefined) return await chooseFor(task, { wanted, required });
  const { choice, free } = await chooseRecorded(task, wanted, recorded.backend);
  return { choice: { ...choice, reason: recorded.reason }, free };
}

type Work = Redirecting & { readonly before: Attached; readonly chosen: Chosen };

/** How far it came. */
type Reached = { -readonly [key in "record" | "done" | "isSet"]: Failed[key] };

async function carryOut(task: Task, here: Entered, work: Work): Promise<Redirected> {
  const { intent, before, chosen } = work;
  const record = intendedRecord(task, here, { intent, choice: chosen.choice, before });
  const reached: Reached = { record, done: undefined, isSet: false };
  const keep = (record: AttachmentRecord) => {
    recording(here, () => task.store.write(record));
    reached.record = record;
  };
  const took: boolean[] = [];
  const tookBack = (isAsBefore: boolean) => void took.push(isAsBefore);
  keep(record);
  try {
    const done = await applyIntent(task, here, { ...work, tookBack });
    reached.done = done;
    const applied = withoutLeft(intent, done.left);
    const redirected = redirectedBy(applied, done);
    work.onRules?.(redirected);
    tellFamilies(task, done);
    const set = await setSettings(task, here, { record: reached.record, keep });
    reached.isSet = reached.record.closeWaitBefore !== undefined;
    keep(appliedRecord(set, { ...done, intent: applied }));
    return redirected;
  } catch (error) {
    const isAsBefore = reached.done === undefined && took.length > 0 && took.every(Boolean);
    await undo(task, { ...reached, here, before, error, isAsBefore });
    throw error;
  }
}

type Applying = Work & { readonly tookBack: (isAsBefore: boolean) => void };

function applyIntent(task: Task, here: Entered, work: Applying): Promise<Applied> {
  const { intent, required, before, chosen, tookBack } = work;
  const isKnown = before.latest !== undefined;
  const { rulesets } = intent;
  return applyRules(task, { here, rulesets, required, isKnown, tookBack }, chosen);
}

function redirectedBy(applied: Intent, { choice, changed }: Applied): Redirected {
  return { families: familiesOf(applied), backend: choice.backend, changed };
}
