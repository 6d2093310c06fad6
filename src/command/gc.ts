// GC: forgets the attachments of this network that the runtime no longer knows. Records only: a netns that is gone took
// its rules along, and one that lives on may be somebody else's by now.
import { NewerRecordError } from "../attachment/newer.ts";
import { type AttachmentKey, type AttachmentRecord, isAbout } from "../attachment/record.ts";
import { isJsonObject, type JsonObject, member } from "../cni/conf.ts";
import { CniError, errorCode } from "../cni/error.ts";
import { handOver, placeOf } from "../upkeep/attached.ts";
import { isNoNetns, withNetns } from "../upkeep/netns.ts";
import type { Call, Told } from "./call.ts";

/**
 * Removes the records of attachments that are not in the list of valid ones; no list means that none is valid (spec,
 * "GC"). Goes on after an error.
 * @throws CniError 5 at the end, with all that went wrong.
 */
export async function gc(call: Call, told: Told): Promise<string> {
  const { network, store } = call;
  const began = beganMs(call);
  const valid = validAttachments(network.document).map(({ containerId, ifName }) => {
    return idOf({ network: network.name, containerId, ifName });
  });
  const unlisted = store
    .entries()
    .filter(({ key }) => key.network === network.name && !valid.includes(idOf(key)))
    .filter(({ key }) => isUnderstood(call, key));
  // What was written since may be of an ADD that runs beside us, which the list cannot know. The next GC takes it.
  const isGoing = await Promise.all(
    unlisted.map(async ({ key, writtenMs }) => writtenMs < began || (await isGone(call, key))),
  );
  const stale = unlisted.filter((_, at) => isGoing[at]).map(({ key }) => key);
  const problems = stale.flatMap((key) => problemOf(() => forget(call, key, stale)));
  store.sweep();
  told.removed = stale.length - problems.length;
  if (problems.length === 0) return "";
  throw new CniError(
    errorCode.ioFailure,
    `${problems.length} of ${stale.length} stale records of network ${network.name} could not be removed`,
    { details: problems.join("; ") },
  );
}

// A record of a later release stays, and so do those of its container, which it may have to do with.
function isUnderstood({ store, log }: Call, { containerId }: AttachmentKey): boolean {
  try {
    store.ofContainer(containerId);
    return true;
  } catch (error) {
    if (!(error instanceof NewerRecordError)) throw error;
    log.warn({ containerId, err: error }, "the record is kept");
    return false;
  }
}

/** File times come from a clock that the kernel moves on in steps. */
const clockGrainMs = 20;

// Of this process, whose list is older: what was added before, the runtime knew when it made the list (spec, "GC": it
// adds nothing meanwhile).
function beganMs({ deps }: Call): number {
  const { epochMs, monotonicMs } = deps.clock;
  return epochMs() - monotonicMs() - clockGrainMs;
}

// Nobody is being added to a netns that is no more.
async function isGone(call: Call, key: AttachmentKey): Promise<boolean> {
  const record = readQuietly(call, key);
  if (record === undefined) return false;
  const { path } = record.netns;
  try {
    return await withNetns(call, { path, allowOwn: true }, (netns) => {
      return !isAbout(record, placeOf(call.store, netns));
    });
  } catch (error) {
    return isNoNetns(error);
  }
}

// The pod's attachments that stay are held against its rules, if it was the last that wrote them.
function forget(call: Call, key: AttachmentKey, stale: readonly AttachmentKey[]): void {
  const { store } = call;
  const record = readQuietly(call, key);
  if (record !== undefined) {
    const { device, inode } = record.netns;
    const place = { device, inode, boot: record.boot ?? "" };
    const going = stale.map(idOf);
    const staying = store.ofContainer(key.containerId).filter((other) => {
      return isAbout(other, place) && !going.includes(idOf(other));
    });
    handOver(store, record, staying);
  }
  store.remove(key);
}

// A file that tells nothing goes like the others.
function readQuietly({ store }: Call, key: AttachmentKey): AttachmentRecord | undefined {
  try {
    return store.read(key);
  } catch {
    // Why it cannot be read is told if it cannot be removed either.
    return undefined;
  }
}

type Attachment = Omit<AttachmentKey, "network">;

// Two names for one key: the released spec's, and that of its tag, which libcni 1.2.3 and later send as well.
function validAttachments(document: JsonObject): Attachment[] {
  const found =
    member(document, "cni.dev/valid-attachments") ?? member(document, "cni.dev/attachments");
  const list: unknown = found?.value ?? [];
  if (!Array.isArray(list)) {
    throw new CniError(errorCode.invalidConf, `invalid conf: ${found?.key}: it is not a list`);
  }
  return list.map((entry: unknown) => attachmentOf(entry, found?.key ?? ""));
}

// An entry that cannot be read may be the one that names a living pod: nothing is removed then.
function attachmentOf(entry: unknown, key: string): Attachment {
  const containerId = isJsonObject(entry) ? member(entry, "containerID")?.value : undefined;
  const ifName = isJsonObject(entry) ? member(entry, "ifname")?.value : undefined;
  if (typeof containerId === "string" && typeof ifName === "string") return { containerId, ifName };
  throw new CniError(
    errorCode.invalidConf,
    `invalid conf: ${key}: ${JSON.stringify(entry)} is not {containerID, ifname}`,
  );
}

function idOf(key: AttachmentKey): string {
  return JSON.stringify([key.network, key.containerId, key.ifName]);
}

function problemOf(work: () => void): string[] {
  try {
    work();
    return [];
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}
