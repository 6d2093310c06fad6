// An attachment by its record alone, as a watching process sees it: what is expected of its netns, whether it is so, and how
// that is brought about again.
import { type AttachmentRecord, familiesIn, profileOf } from "../attachment/record.ts";
import type { Intent } from "../mesh/profile.ts";
import { chooseRecorded } from "../node/backend.ts";
import { attachedTo } from "./attached.ts";
import { openFamilies } from "./families.ts";
import type { Expected } from "./observe.ts";
import { type Redirected, redirect } from "./redirect.ts";
import { wishedIn } from "./settings.ts";
import type { Entered, Task } from "./task.ts";

/**
 * The record that a netns is held against: the latest of the pod's attachments in it, whose rules are those of all. None
 * where this attachment has none that is about this very netns.
 * @throws Fault io as the store's read does.
 */
export function recordFor(task: Task, here: Entered): AttachmentRecord | undefined {
  const { own, latest } = attachedTo(task, here);
  return own === undefined ? undefined : latest;
}

/** What a record lets expect of its netns. @throws Fault rejected where the node has no programs for its backend by now. */
export async function expectedBy(task: Task, record: AttachmentRecord): Promise<Expected> {
  const { choice } = await chooseRecorded(task, familiesIn(record), record.backend);
  return {
    rulesets: record.rulesets,
    standFor: profileOf(record)?.standFor ?? (() => false),
    choice,
    settings: wishedIn(record),
    open: openFamilies(task, record),
    optional: [],
  };
}

/**
 * Brings the netns back to what its record says, with the families that were left open, where it speaks them by now.
 * @throws as redirect does.
 */
export function repair(task: Task, here: Entered, record: AttachmentRecord): Promise<Redirected> {
  const intent = meantBy(task, record);
  return redirect(task, here, { intent, required: familiesIn(record), recorded: record });
}

// The rules as they were written: another version may spell them anew. Of open families there are none yet.
function meantBy(task: Task, record: AttachmentRecord): Intent {
  const { intent: words, rulesets } = record;
  const spelt = profileOf(record)?.readIntent(words, openFamilies(task, record))?.rulesets ?? [];
  return { words, rulesets: [...rulesets, ...spelt], settings: wishedIn(record) };
}
