// The kernel settings of a netns: as the pod wants them while an attachment is there that does, else as they were before us.
// Records of this format keep one value from before, that of the one setting that their mesh may change.
import { type AttachmentRecord, intentOf, profileOf } from "../attachment/record.ts";
import { Fault } from "../fault.ts";
import type { Setting } from "../mesh/profile.ts";
import type { Netns } from "../netns/path.ts";
import { readSysctl, writeSysctl } from "../netns/sysctl.ts";
import type { SettingDrift } from "./drift.ts";
import { type Entered, lookingOf, nameOf, type Task } from "./task.ts";

/**
 * Brings the settings to what the record intends. After the rules: they load conntrack, which has the settings.
 * What was there before is kept in the record first (`keep`), so that no death in between loses it.
 * @returns the record, with what the settings were before the first of us.
 * @throws Fault try-again or netns-unusable, which names pod, wish and file.
 */
export async function setSettings(
  task: Task,
  here: Entered,
  { record, keep }: Keeping,
): Promise<AttachmentRecord> {
  const { netns } = here;
  const { closeWaitBefore, ...rest } = record;
  const [wanted] = intentOf(record)?.settings ?? [];
  try {
    if (wanted === undefined) {
      await giveBackSettings(task, netns, record);
      return rest;
    }
    const before = closeWaitBefore ?? (await readSysctl(netns, wanted.name, lookingOf(task)));
    const told = { ...record, closeWaitBefore: before };
    if (closeWaitBefore === undefined) keep(told);
    await writeSysctl(netns, wanted, lookingOf(task));
    return told;
  } catch (error) {
    throw toldOf(here, record, error);
  }
}

/** The record as it stands, and what keeps another in its place. */
export type Keeping = {
  readonly record: AttachmentRecord;
  readonly keep: (record: AttachmentRecord) => void;
};

/** The settings that have other values than these. @throws Fault as readSysctl does. */
export async function settingDrifts(
  task: Task,
  netns: Netns,
  wanted: readonly Setting[],
): Promise<SettingDrift[]> {
  const drifts: SettingDrift[] = [];
  for (const { name: setting, value: expected } of wanted) {
    const found = await readSysctl(netns, setting, lookingOf(task));
    if (found !== expected) drifts.push({ kind: "changed-sysctl", setting, expected, found });
  }
  return drifts;
}

/** Gives the settings back as they were before the first attachment, if one of them changed them. */
export async function giveBackSettings(
  task: Task,
  netns: Netns,
  record: AttachmentRecord,
): Promise<void> {
  for (const setting of settingsBefore(record)) {
    await writeSysctl(netns, setting, lookingOf(task));
  }
}

/** What the settings were before the first of us changed them. */
function settingsBefore(record: AttachmentRecord): Setting[] {
  const { closeWaitBefore: value } = record;
  if (value === undefined) return [];
  return [...profileOf(record).settings.keys()].map((name) => ({ name, value }));
}

function toldOf(here: Entered, record: AttachmentRecord, error: unknown): unknown {
  if (!(error instanceof Fault) || !error.message.startsWith("a kernel setting")) return error;
  const [words] = profileOf(record).settings.values();
  if (words === undefined) return error;
  const message = `${nameOf(here)} wants ${words.wish}, and ${error.message}`;
  const details = `${error.details}; it is ${words.source}`;
  return new Fault(error.kind, message, { details, cause: error });
}
