// Kernel settings of a netns: set while an attachment there wants them, otherwise put back to what they were before.
import { type AttachmentRecord, profileOf, type RecordedSetting } from "../attachment/record.ts";
import { withBefores } from "../attachment/settings.ts";
import { Fault } from "../fault.ts";
import type { Setting, SettingWords } from "../mesh/profile.ts";
import type { Netns } from "../netns/path.ts";
import { readSysctl, writeSysctl } from "../netns/sysctl.ts";
import type { SettingDrift } from "./drift.ts";
import { type Entered, lookingOf, nameOf, type Task } from "./task.ts";

/** The record as it stands, and what keeps another in its place. */
export type Keeping = {
  readonly record: AttachmentRecord;
  readonly keep: (record: AttachmentRecord) => void;
};

/**
 * Brings the settings to what the record intends. After the rules: they load conntrack, which has the settings.
 * What was there before is kept in the record first (`keep`), so that no death in between loses it.
 * @returns the record, with what the settings were before the first of us, and without those that nobody wishes any more.
 * @throws Fault try-again or netns-unusable, which names pod, wish and file.
 */
export async function setSettings(
  task: Task,
  here: Entered,
  { record, keep }: Keeping,
): Promise<AttachmentRecord> {
  let told = record;
  for (const setting of record.settings) {
    const { name, value } = setting;
    const saying = { here, words: profileOf(record)?.settings.get(name) };
    if (setting.before === undefined) {
      const before = await said(saying, () => readSysctl(here.netns, name, lookingOf(task)));
      told = { ...told, settings: withBefores(told.settings, new Map([[name, before]])) };
      keep(told);
    }
    const target = value ?? setting.before;
    if (target === undefined) continue;
    const wanted = { name, value: target };
    await said(saying, () => writeSysctl(here.netns, wanted, lookingOf(task)));
  }
  return { ...told, settings: told.settings.filter(({ value }) => value !== undefined) };
}

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

/** The settings that a record wishes for. */
export function wishedIn({ settings }: Pick<AttachmentRecord, "settings">): Setting[] {
  return settings.flatMap(({ name, value }) => (value === undefined ? [] : [{ name, value }]));
}

/** Gives the settings back as they were before the first attachment, as far as one of them changed them. */
export async function giveBackSettings(
  task: Task,
  netns: Netns,
  settings: readonly RecordedSetting[],
): Promise<void> {
  for (const { name, before } of settings) {
    if (before !== undefined) await writeSysctl(netns, { name, value: before }, lookingOf(task));
  }
}

type Saying = { readonly here: Entered; readonly words: SettingWords | undefined };

// So that the error says who wanted the setting, and where that was written.
async function said<T>({ here, words }: Saying, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Fault) || words === undefined) throw error;
    const message = `${nameOf(here)} wants ${words.wish}, and ${error.message}`;
    const details = `${error.details}; it is ${words.source}`;
    throw new Fault(error.kind, message, { details, cause: error });
  }
}
