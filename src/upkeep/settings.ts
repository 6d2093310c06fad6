// The kernel settings of a netns: as the pod wants them while an attachment is there that does, else as they were before us.
// Records of this format keep one value from before, that of the one setting that their mesh may change.
import { type AttachmentRecord, intentOf, profileOf } from "../attachment/record.ts";
import { type Call, lookingOf, subjectOf } from "../command/call.ts";
import { Fault } from "../fault.ts";
import type { Setting } from "../mesh/profile.ts";
import type { Netns } from "../netns/path.ts";
import { readSysctl, writeSysctl } from "../netns/sysctl.ts";

/**
 * Brings the settings to what the record intends. After the rules: they load conntrack, which has the settings.
 * What was there before is kept in the record first (`keep`), so that no death in between loses it.
 * @returns the record, with what the settings were before the first of us.
 * @throws Fault 11 or 102, which names pod, wish and file.
 */
export async function setSettings(
  call: Call,
  { netns, record }: { readonly netns: Netns; readonly record: AttachmentRecord },
  keep: (record: AttachmentRecord) => void,
): Promise<AttachmentRecord> {
  const { closeWaitBefore, ...rest } = record;
  const [wanted] = intentOf(record)?.settings ?? [];
  try {
    if (wanted === undefined) {
      await giveBackSettings(call, netns, record);
      return rest;
    }
    const before = closeWaitBefore ?? (await readSysctl(netns, wanted.name, lookingOf(call)));
    const told = { ...record, closeWaitBefore: before };
    if (closeWaitBefore === undefined) keep(told);
    await writeSysctl(netns, wanted, lookingOf(call));
    return told;
  } catch (error) {
    throw toldOf(call, record, error);
  }
}

/** Gives the settings back as they were before the first attachment, if one of them changed them. */
export async function giveBackSettings(
  call: Call,
  netns: Netns,
  record: AttachmentRecord,
): Promise<void> {
  for (const setting of settingsBefore(record)) {
    await writeSysctl(netns, setting, lookingOf(call));
  }
}

/** What the settings were before the first of us changed them. */
function settingsBefore(record: AttachmentRecord): Setting[] {
  const { closeWaitBefore: value } = record;
  if (value === undefined) return [];
  return [...profileOf(record).settings.keys()].map((name) => ({ name, value }));
}

function toldOf(call: Call, record: AttachmentRecord, error: unknown): unknown {
  if (!(error instanceof Fault) || !error.message.startsWith("a kernel setting")) return error;
  const [words] = profileOf(record).settings.values();
  if (words === undefined) return error;
  const message = `${subjectOf(call)} wants ${words.wish}, and ${error.message}`;
  const details = `${error.details}; it is ${words.source}`;
  return new Fault(error.kind, message, { details, cause: error });
}
