// Redirects one attachment: first it is written down what is intended, then come the rules, then the kernel settings, and in
// the end what was done is written down. What fails is undone. Serves ADD, and repair.
import type { AttachmentRecord } from "../attachment/record.ts";
import { familiesOf, type Intent } from "../mesh/profile.ts";
import { jobFor } from "../netfilter/converge/job.ts";
import { replacing } from "../netfilter/own.ts";
import type { Backend, Family, Ruleset } from "../netfilter/table.ts";
import { freshTransaction } from "../netfilter/transaction.ts";
import { type Chosen, chooseFor, chooseRecorded } from "../node/backend.ts";
import { type Applied, applyRules } from "./apply.ts";
import { type Attached, attachedTo } from "./attached.ts";
import { type Plan, tellFamilies, withoutLeft } from "./families.ts";
import { hearing } from "./heard.ts";
import { locked } from "./locked.ts";
import { setSettings } from "./settings.ts";
import type { Entered, Task } from "./task.ts";
import { type Failed, undo } from "./undo.ts";
import { appliedRecord, intendedRecord, recording, requireName } from "./writing.ts";

export type Redirecting = Plan & {
  /** The record by which it is done: mesh and backend are those. Not given: those of the task. */
  readonly recorded?: AttachmentRecord;
  /** What was warned of before. */
  readonly warned?: readonly string[];
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
  const former = [before.own, ...before.siblings].flatMap((one) => one?.rulesets ?? []);
  const rulesets = plan.intent.rulesets.map((one) => replacing(one, former));
  const work: Work = { ...plan, rulesets, before, chosen };
  // And before the record: what can never be loaded is the conf's fault.
  for (const ruleset of equipped(work)) {
    jobFor(chosen.choice, ruleset, freshTransaction(ruleset));
  }
  return await carryOut(task, here, work);
}

// What there are no programs for will not be written: whether it may be left out shows when the netns is looked at.
function equipped({ rulesets, chosen }: Work): Ruleset[] {
  return rulesets.filter(({ family }) => chosen.choice.tools.has(family));
}

async function choose(task: Task, { intent, required, recorded }: Redirecting): Promise<Chosen> {
  const wanted = familiesOf(intent);
  if (recorded === undefined) return await chooseFor(task, { wanted, required });
  const { choice, free } = await chooseRecorded(task, wanted, recorded.backend);
  return { choice: { ...choice, reason: recorded.backendReason }, free };
}

type Work = Redirecting & {
  readonly before: Attached;
  readonly chosen: Chosen;
  /** The intent's, with what of earlier ones in this netns goes. */
  readonly rulesets: readonly Ruleset[];
};

/** How far it came. */
type Reached = { -readonly [key in "record" | "done" | "isSet"]: Failed[key] };

async function carryOut(task: Task, here: Entered, work: Work): Promise<Redirected> {
  const { before, recorded } = work;
  const record = intended(task, here, work);
  const reached: Reached = { record, done: undefined, isSet: false };
  const keep = (record: AttachmentRecord) => {
    recording(here, () => task.store.write(record));
    reached.record = record;
  };
  const took: boolean[] = [];
  const tookBack = (isAsBefore: boolean) => void took.push(isAsBefore);
  const { log, warnings } = hearing(task.log, work.warned ?? recorded?.warnings);
  keep(record);
  try {
    const done = await applyIntent({ ...task, log }, here, { ...work, tookBack });
    reached.done = done;
    const applied = withoutLeft(work.intent, done.left);
    const redirected = redirectedBy(applied, done);
    work.onRules?.(redirected);
    tellFamilies({ ...task, log }, done);
    const set = await setSettings(task, here, { record: reached.record, keep });
    reached.isSet = reached.record.settings.some((one) => one.before !== undefined);
    keep(appliedRecord(set, { ...done, rulesets: applied.rulesets, warnings }));
    return redirected;
  } catch (error) {
    const isAsBefore = reached.done === undefined && took.length > 0 && took.every(Boolean);
    await undo(task, { ...reached, here, before, error, isAsBefore });
    throw error;
  }
}

function intended(task: Task, here: Entered, work: Work): AttachmentRecord {
  const { intent, before, chosen, recorded } = work;
  const profile = recorded?.profile ?? task.settings.profile.name;
  const planned = { ...intent, rulesets: equipped(work) };
  return intendedRecord(task, here, { profile, intent: planned, choice: chosen.choice, before });
}

type Applying = Work & { readonly tookBack: (isAsBefore: boolean) => void };

function applyIntent(task: Task, here: Entered, work: Applying): Promise<Applied> {
  const { rulesets, required, before, chosen, tookBack } = work;
  const isKnown = before.latest !== undefined;
  return applyRules(task, { here, rulesets, required, isKnown, tookBack }, chosen);
}

function redirectedBy(applied: Intent, { choice, changed }: Applied): Redirected {
  return { families: familiesOf(applied), backend: choice.backend, changed };
}
