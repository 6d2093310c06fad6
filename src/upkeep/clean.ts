// Cleans up after one attachment: its rules and kernel settings are taken back, and it is forgotten. Lenient, since what is
// gone cannot be cleaned: all that can be missing or wrong here is logged. Serves DEL.
import { NewerRecordError } from "../attachment/newer.ts";
import {
  type AttachmentKey,
  type AttachmentRecord,
  familiesIn,
  isAbout,
  isLater,
} from "../attachment/record.ts";
import { ownOf } from "../netfilter/own.ts";
import type { Family } from "../netfilter/table.ts";
import { isSameNetns } from "../netns/identity.ts";
import type { Netns } from "../netns/path.ts";
import { attachedTo, handOver, placeOf } from "./attached.ts";
import { lockedIfPossible } from "./locked.ts";
import { enter, isNoNetns, withNetns } from "./netns.ts";
import { removeAll } from "./removal.ts";
import { giveBackSettings } from "./settings.ts";
import type { Entered, Subject, Task } from "./task.ts";

export type Cleaned = {
  /** The families that rules were taken out of; undefined where none were looked for. */
  readonly changed?: readonly Family[];
  /** False: the netns is there and not known to be clean, and the record stays for another try. */
  readonly isForgotten: boolean;
};

/**
 * Takes out what a redirect put in. Rules are only touched in the very netns that the record is about, and only where no other
 * attachment has them.
 * @throws what the store does where the record cannot be taken away.
 */
export async function clean(task: Task, subject: Subject): Promise<Cleaned> {
  const record = found(task, subject.key);
  if (record === undefined || record === "newer") return { isForgotten: record === undefined };
  // The runtime names none when it is gone.
  if (subject.netns.path === "") return forget(task, record);
  let isInside = false;
  try {
    return await enter(task, subject, (here) =>
      lockedIfPossible(task, here, () => {
        isInside = true;
        return cleanUp(task, here);
      }),
    );
  } catch (error) {
    if (isInside) throw error;
    return isNoNetns(error) ? forget(task, record) : kept(task, error);
  }
}

// What is no record tells nothing, and goes. One of a later release stays, with the rules that it is about.
function found({ store, log }: Task, key: AttachmentKey): AttachmentRecord | "newer" | undefined {
  try {
    const record = store.read(key);
    if (record === undefined) store.removeNone(key);
    return record;
  } catch (error) {
    log.warn({ err: error }, "the record cannot be used, so no rule is touched");
    if (error instanceof NewerRecordError) return "newer";
    store.remove(key);
    return undefined;
  }
}

// Where locks are not taken, an ADD that ran beside us may have written rules since, and its record.
function forget({ store, log }: Task, record: AttachmentRecord): Cleaned {
  const isForgotten = store.removeThis(record);
  if (!isForgotten) log.warn({}, "another ADD has written a record meanwhile, which is kept");
  return { isForgotten };
}

function kept({ log }: Task, error: unknown): Cleaned {
  log.warn({ err: error }, "rules were not taken out; the record is kept");
  return { isForgotten: false };
}

// The process that held the lock before us may have written another record, or removed it.
async function cleanUp(task: Task, here: Entered): Promise<Cleaned> {
  const record = found(task, here.key);
  if (record === undefined || record === "newer") return { isForgotten: record === undefined };
  let cleaned: Pick<Cleaned, "changed"> = {};
  try {
    if (await isOurs(task, here.netns, record)) cleaned = await leave(task, here);
  } catch (error) {
    // What a netns that cannot be worked in has of ours is nobody's to take out.
    if (!isNoNetns(error)) return kept(task, error);
  }
  return { ...cleaned, ...forget(task, record) };
}

// The kernel gives numbers out again: a netns that another container was recorded with later is that one's, and ours was
// gone before its DEL came.
async function isOurs(task: Task, netns: Netns, record: AttachmentRecord): Promise<boolean> {
  const place = placeOf(task.store, netns);
  if (!isAbout(record, place) || !(await isWhereRecorded(task, netns, record))) return false;
  return !task.store
    .ofInode(netns.inode)
    .filter(({ containerId }) => containerId !== record.containerId)
    .some((other) => isAbout(other, place) && isLater(other, record));
}

// By whichever name it is called today, the recorded one leads to it as well.
async function isWhereRecorded(
  task: Task,
  netns: Netns,
  { netns: { path } }: AttachmentRecord,
): Promise<boolean> {
  if (path === netns.path) return true;
  try {
    return await withNetns(task, { path, allowOwn: true }, (found) => isSameNetns(found, netns));
  } catch (error) {
    if (isNoNetns(error)) return false;
    throw error;
  }
}

// A pod with two attachments has one set of rules for both: the last to go takes it along.
async function leave(task: Task, here: Entered): Promise<Pick<Cleaned, "changed">> {
  const { own, siblings } = attachedTo(task, here);
  if (own === undefined) return {};
  if (siblings.length > 0) {
    leaveTo(task, own, siblings);
    return {};
  }
  const { backend, rulesets, settings } = own;
  const written = { backend, families: familiesIn(own), own: ownOf(rulesets) };
  const changed = await removeAll(task, here, written);
  await giveBackSettings(task, here.netns, settings);
  return { changed };
}

// Kept for that, the record would keep the rules from going with the last attachment.
function leaveTo(task: Task, own: AttachmentRecord, siblings: readonly AttachmentRecord[]): void {
  try {
    handOver(task.store, own, siblings);
  } catch (error) {
    task.log.warn(
      { err: error },
      "the pod's other attachment may be told drift: the rules were this one's",
    );
  }
}
