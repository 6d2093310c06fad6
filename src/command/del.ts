// DEL: takes out what ADD put in, and forgets the attachment. Lenient: libcni stops the whole chain at the first DEL that
// fails, which leaks the addresses of the plugins before us, so whatever can be missing or wrong here is no error.
import { type AttachmentRecord, isAbout, isLater } from "../attachment/record.ts";
import { ownOf } from "../netfilter/own.ts";
import type { Netns } from "../netns/path.ts";
import { attachedTo, handOver, placeOf } from "../upkeep/attached.ts";
import { cleanNetns } from "../upkeep/clean.ts";
import { isNoNetns, named, withNetns } from "../upkeep/netns.ts";
import { giveBackSettings } from "../upkeep/settings.ts";
import { type Call, keyOf, type Told } from "./call.ts";

/**
 * Cleans up after the attachment. Rules are only touched in the very netns that the record is about. The record stays where
 * that netns is still there and is not known to be clean: a later DEL goes by it.
 */
export async function del(call: Call, told: Told): Promise<string> {
  const record = readRecord(call);
  if (record === undefined) call.store.remove(keyOf(call));
  else if (await isLeftClean(call, record, told)) forget(call, record);
  call.store.sweep();
  return "";
}

// An ADD that ran beside us may have written rules since, and its record.
function forget({ store, log }: Call, record: AttachmentRecord): void {
  if (store.removeThis(record)) return;
  log.warn({}, "another ADD has written a record meanwhile, which is kept");
}

// One that is not ours, or no file, tells nothing, and goes.
function readRecord(call: Call): AttachmentRecord | undefined {
  try {
    return call.store.read(keyOf(call));
  } catch (error) {
    call.log.warn({ err: error }, "the record cannot be used, so no rule is touched");
    return undefined;
  }
}

async function isLeftClean(call: Call, record: AttachmentRecord, told: Told): Promise<boolean> {
  // The runtime names none when it is gone.
  if (call.request.netns === "") return true;
  try {
    await withNetns(call, named(call), async (netns) => {
      if (await isOurs(call, netns, record)) await leave(call, netns, told);
    });
    return true;
  } catch (error) {
    // A netns that is gone took its rules along, and the node's own is not what we wrote to.
    if (isNoNetns(error)) return true;
    call.log.warn({ err: error }, "rules were not taken out; the record is kept");
    return false;
  }
}

// The kernel gives numbers out again: a netns that another container was recorded with later is that one's, and ours was
// gone before its DEL came.
async function isOurs(call: Call, netns: Netns, record: AttachmentRecord): Promise<boolean> {
  const place = placeOf(call, netns);
  if (!isAbout(record, place) || !(await isWhereRecorded(call, netns, record))) return false;
  return !call.store
    .ofInode(netns.inode)
    .filter(({ containerId }) => containerId !== record.containerId)
    .some((other) => isAbout(other, place) && isLater(other, record));
}

// By whichever name the runtime calls it today, the recorded one leads to it as well.
async function isWhereRecorded(
  call: Call,
  netns: Netns,
  { netns: { path } }: AttachmentRecord,
): Promise<boolean> {
  if (path === netns.path) return true;
  try {
    return await withNetns(call, { path, allowOwn: true }, ({ device, inode }) => {
      return device === netns.device && inode === netns.inode;
    });
  } catch (error) {
    if (isNoNetns(error)) return false;
    throw error;
  }
}

// A pod with two attachments has one set of rules for both: the last to go takes it along.
async function leave(call: Call, netns: Netns, told: Told): Promise<void> {
  const { own, siblings } = attachedTo(call, netns);
  if (own === undefined) return;
  if (siblings.length > 0) {
    leaveTo(call, own, siblings);
    return;
  }
  const { backend, intent, rulesets } = own;
  const written = { backend, families: intent.families, own: ownOf(rulesets) };
  told["changed"] = await cleanNetns(call, netns, written);
  await giveBackSettings(call, netns, own);
}

// Kept for that, the record would keep the rules from going with the last attachment.
function leaveTo(call: Call, own: AttachmentRecord, siblings: readonly AttachmentRecord[]): void {
  try {
    handOver(call.store, own, siblings);
  } catch (error) {
    call.log.warn(
      { err: error },
      "the pod's other attachment may be told drift: the rules were this one's",
    );
  }
}
