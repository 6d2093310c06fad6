// The kernel settings of records: what is wished for, and what was there before the first attachment of a netns. Pure.
import type { AttachmentRecord, RecordedSetting } from "./record.ts";

/** What settings were before the first of us, by their names. */
export type Befores = ReadonlyMap<string, string>;

/** What is known of it from these records; of two that differ, the first counts. */
export function beforesIn(records: readonly Pick<AttachmentRecord, "settings">[]): Befores {
  const known = new Map<string, string>();
  for (const { name, before } of records.flatMap(({ settings }) => settings)) {
    if (before !== undefined && !known.has(name)) known.set(name, before);
  }
  return known;
}

/** These settings with what is known, and what is known of others. */
export function withBefores(
  settings: readonly RecordedSetting[],
  befores: Befores,
): RecordedSetting[] {
  const names = settings.map(({ name }) => name);
  const others = [...befores].filter(([name]) => !names.includes(name));
  return [
    ...settings.map((setting) => {
      const before = befores.get(setting.name);
      return before === undefined ? setting : { ...setting, before };
    }),
    ...others.map(([name, before]) => ({ name, before })),
  ];
}
