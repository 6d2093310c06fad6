// GC: forgets the attachments of this network that the runtime no longer knows. Records only: a netns that is gone took
// its rules along, and one that lives on may be somebody else's by now.
import type { AttachmentKey } from "../attachment/record.ts";
import { isJsonObject, type JsonObject, member } from "../cni/conf.ts";
import { CniError, errorCode } from "../cni/error.ts";
import type { Call, Told } from "./call.ts";

/**
 * Removes the records of attachments that are not in the list of valid ones; no list means that none is valid (spec,
 * "GC"). Goes on after an error.
 * @throws CniError 5 at the end, with all that went wrong.
 */
export function gc(call: Call, told: Told): Promise<string> {
  const { network, store } = call;
  const began = beganMs(call);
  const valid = validAttachments(network.document).map(({ containerId, ifName }) => {
    return idOf({ network: network.name, containerId, ifName });
  });
  const stale = store
    .entries()
    .filter(({ key }) => key.network === network.name)
    // What was written since may be of an ADD that runs beside us, which the list cannot know. The next GC takes it.
    .filter(({ key, writtenMs }) => writtenMs < began || isGone(call, key))
    .map(({ key }) => key)
    .filter((key) => !valid.includes(idOf(key)));
  const problems = stale.flatMap((key) => problemOf(() => store.remove(key)));
  told["removed"] = stale.length - problems.length;
  if (problems.length === 0) return Promise.resolve("");
  throw new CniError(
    errorCode.ioFailure,
    `${problems.length} of ${stale.length} stale records of network ${network.name} could not be removed`,
    { details: problems.join("; ") },
  );
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
function isGone({ store, deps }: Call, key: AttachmentKey): boolean {
  const recorded = store.read(key)?.netns;
  if (recorded === undefined) return false;
  try {
    const netns = deps.openNetns(recorded.path, true);
    deps.closeNetns(netns);
    return netns.inode !== recorded.inode || netns.device !== recorded.device;
  } catch {
    // Nothing is there, or no netns.
    return true;
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
