// After a redirect that failed: puts netns and record back as they were. If that fails or cannot be proven, the `intended`
// record stays, so that DEL finds the rules.
import { type AttachmentRecord, familiesIn } from "../attachment/record.ts";
import { withBefores } from "../attachment/settings.ts";
import { Fault } from "../fault.ts";
import { BatchError } from "../netfilter/iptables/client.ts";
import { type Own, ownOf, replacing } from "../netfilter/own.ts";
import { chooseRecorded } from "../node/backend.ts";
import { type Applied, applyRules } from "./apply.ts";
import type { Attached } from "./attached.ts";
import { findOwn, removeSpots } from "./removal.ts";
import { giveBackSettings, wishedIn } from "./settings.ts";
import type { Entered, Task } from "./task.ts";

/** A redirect that failed. */
export type Failed = {
  readonly here: Entered;
  readonly error: unknown;
  /** The record as it was last written. */
  readonly record: AttachmentRecord;
  readonly before: Attached;
  /** What was done to the rules, when that had been brought to its end. */
  readonly done: Made | undefined;
  /** The rules are known to be as they were, since those who failed took back what they had made. */
  readonly isAsBefore: boolean;
  /** A kernel setting is, or may be, another than before. */
  readonly isSet: boolean;
};

type Made = Pick<Applied, "choice" | "created">;

/** Less is not enough to look in. */
const leastMs = 100;

/** Takes back what can be. Never throws: what goes wrong is told to the log. */
export async function undo(task: Task, failed: Failed): Promise<void> {
  try {
    const isNothing = failed.isAsBefore || wasNeverThere(failed.error);
    const isUndone = isNothing || (await takeBack(task, failed));
    if (!isUndone) task.log.warn({}, "what ADD did may not be undone; the record is kept for DEL");
    else if (failed.before.earlier === undefined) task.store.remove(failed.here.key);
    else task.store.write(failed.before.earlier);
  } catch (error) {
    task.log.warn({ err: error }, "what ADD did could not be undone; the record is kept for DEL");
  }
}

// To the rules of those that were here before, or to none. True when it is seen to be so.
async function takeBack(task: Task, failed: Failed): Promise<boolean> {
  const { here, record, before, error } = failed;
  const { netns } = here;
  const { latest } = before;
  // A child that was ended may have set it or not.
  const isSet = failed.isSet || (error instanceof Fault && error.kind === "try-again");
  if (task.remainingMs() < leastMs) return false;
  if (latest !== undefined) await bringBack(task, here, { latest, record });
  else if (failed.done !== undefined) {
    await removeMade(task, here, { ...failed.done, own: ownOf(record.rulesets) });
  }
  if (isSet) {
    const wished = wishedIn(latest ?? { settings: [] }).map(
      ({ name, value }) => [name, value] as const,
    );
    await giveBackSettings(task, netns, withBefores(record.settings, new Map(wished)));
  }
  if (latest !== undefined) return true;
  const { backend, rulesets } = record;
  const written = { backend, families: familiesIn(record), own: ownOf(rulesets) };
  return (await findOwn(task, netns, written)).length === 0;
}

type BringingBack = Pick<Failed, "record"> & { readonly latest: AttachmentRecord };

async function bringBack(
  task: Task,
  here: Entered,
  { latest, record }: BringingBack,
): Promise<void> {
  const required = familiesIn(latest);
  const chosen = await chooseRecorded(task, required, latest.backend);
  const rulesets = latest.rulesets.map((one) => replacing(one, record.rulesets));
  await applyRules(task, { here, rulesets, required, isKnown: true }, chosen);
}

// What was there without a record stays: it may be all that redirects.
async function removeMade(
  task: Task,
  here: Entered,
  { choice, created, own }: Made & { readonly own: Own },
): Promise<void> {
  const { backend } = choice;
  const spots = created.map((family) => ({ backend, family }));
  await removeSpots(task, here, { own, spots });
}

// The child that would have written did not come as far as the netns.
function wasNeverThere(error: unknown): boolean {
  return error instanceof BatchError && !error.isPassing && error.restored.length === 0;
}
