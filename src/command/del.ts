// DEL: takes out what ADD put in, and forgets the attachment. Lenient: libcni stops the whole chain at the first DEL that
// fails, which leaks the addresses of the plugins before us, so whatever can be missing or wrong here is no error.
import { type AttachmentRecord, recordName } from "../attachment/record.ts";
import { ownChains } from "../mesh/linkerd.ts";
import { removeOwn } from "../netfilter/remove.ts";
import type { Family } from "../netfilter/table.ts";
import type { Netns } from "../netns/path.ts";
import { chooseBackend } from "./backend.ts";
import { type Call, keyOf, sessionOf, type Told } from "./call.ts";

/** Cleans up after the attachment. Rules are only touched in the very netns that the record is about. */
export async function del(call: Call, told: Told): Promise<string> {
  const key = keyOf(call);
  const record = call.store.read(key);
  if (record !== undefined) await clean(call, record, told);
  call.store.remove(key);
  return "";
}

async function clean(call: Call, record: AttachmentRecord, told: Told): Promise<void> {
  try {
    const netns = openRecorded(call, record);
    if (netns === undefined) return;
    try {
      told["changed"] = await removeRules(call, netns, record);
    } finally {
      call.deps.closeNetns(netns);
    }
  } catch (error) {
    call.log.warn({ err: error }, "rules were not taken out; they go with the netns");
  }
}

// A netns that is gone took its rules along. One with another inode, and the node's own, are not what we wrote to.
function openRecorded(call: Call, record: AttachmentRecord): Netns | undefined {
  const { request, deps } = call;
  if (request.netns === "") return undefined;
  const netns = deps.openNetns(request.netns, request.netnsOverride);
  const { inode, device } = record.netns;
  if (netns.inode === inode && netns.device === device && !isShared(call, record)) return netns;
  deps.closeNetns(netns);
  return undefined;
}

// A pod with two attachments has one set of rules for both: the last to go takes it along. And the kernel gives numbers
// out again: a netns that another pod was recorded with later is that pod's, and ours was gone before its DEL came.
function isShared(call: Call, record: AttachmentRecord): boolean {
  const entries = call.store.entries();
  const own = recordName(record);
  const ownMs = entries.find(({ key }) => recordName(key) === own)?.writtenMs ?? 0;
  return entries
    .filter(({ key }) => recordName(key) !== own)
    .filter(({ key, writtenMs }) => key.containerId === record.containerId || writtenMs > ownMs)
    .some(({ key }) => call.store.read(key)?.netns.inode === record.netns.inode);
}

async function removeRules(call: Call, netns: Netns, record: AttachmentRecord): Promise<Family[]> {
  const { families } = record.intent;
  const { choice } = await chooseBackend(call, families, record);
  return await removeOwn(sessionOf(call, netns, choice), families, ownChains);
}
