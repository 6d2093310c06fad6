// The record of one attachment: what was intended for it, where, and through which backend. Pure: its shape, and its name.
// CHECK compares with it, DEL cleans by it, GC goes through all of them. record-text.ts has its text.
import * as z from "zod/mini";
import type { Profile } from "../mesh/profile.ts";
import { profileNamed } from "../mesh/profiles.ts";
import {
  backends,
  builtinChains,
  type Family,
  families,
  protocols,
  type Ruleset,
  tableNames,
} from "../netfilter/table.ts";
import { isSameNetns, type NetnsId } from "../netns/identity.ts";

/** What identifies an attachment (spec: container ID and interface, within a network). */
export type AttachmentKey = {
  readonly network: string;
  readonly containerId: string;
  readonly ifName: string;
};

const text = z.string();
const number = z.number();
const texts = z.readonly(z.array(text));

/** What of a table earlier rules had here: it stands in a record until those that replace them are in place. */
const staleSchema = z.object({ name: z.enum(tableNames), chains: texts, placed: texts });

/** One table's part of a ruleset. */
const tableSchema = z.object({
  name: z.enum(tableNames),
  chains: z.readonly(z.array(z.object({ name: text, rules: texts }))),
  placed: z.readonly(z.array(z.object({ hook: z.enum(builtinChains.mangle), rule: text }))),
  aliases: z.exactOptional(texts),
  stale: z.exactOptional(staleSchema),
});

/** The shape of netfilter/table.Ruleset: the compiler holds both against each other. */
const rulesetSchema: z.ZodMiniType<Ruleset> = z.object({
  family: z.enum(families),
  tables: z.readonly(z.array(tableSchema)),
  traffic: z.object({
    protocols: z.readonly(z.array(z.enum(protocols))),
    loopback: z.boolean(),
  }),
});

/** A kernel setting by its dotted name. */
const settingSchema = z.object({
  name: text,
  /** What it shall be; not there: nothing is wished, and only what it was is known. */
  value: z.exactOptional(text),
  /** What it was before the first attachment of this netns changed it. */
  before: z.exactOptional(text),
});

/** The programs that a family was written and read back with; of which version, where a save of theirs said so. */
const toolsSchema = z.object({
  family: z.enum(families),
  restore: text,
  save: text,
  version: z.exactOptional(text),
});

/** The number of the form that this version writes. What it adds to that form later must be optional. */
export const recordFormat = 2;

export const recordSchema = z.object({
  format: z.literal(recordFormat),
  /** `intended` from before the first rule until the last step of ADD is done. */
  state: z.enum(["intended", "applied"]),
  network: text,
  containerId: text,
  ifName: text,
  pod: z.object({ namespace: text, name: text }),
  netns: z.object({ path: text, device: number, inode: number }),
  /** The node's boot in which it was written, and when, in milliseconds since then: no clock that is set changes these. */
  boot: z.exactOptional(text),
  sinceBootMs: z.exactOptional(number),
  /** The mesh, and what is meant for the pod, in the mesh's own words. */
  profile: text,
  intent: z.looseObject({}),
  /**
   * The rules as they were written, one ruleset for each family: CHECK holds a pod against these, also after an upgrade that spells
   * anew; DEL knows by them what is ours.
   */
  rulesets: z.readonly(z.array(rulesetSchema).check(z.minLength(1))),
  /**
   * Families that are wanted and were left out, since the netns did not speak them: CHECK looks whether it does now. Not there:
   * none was left out, or the record is of a version that did not look.
   */
  open: z.exactOptional(z.readonly(z.array(z.enum(families)))),
  settings: z.readonly(z.array(settingSchema)),
  backend: z.enum(backends),
  backendReason: text,
  tools: z.readonly(z.array(toolsSchema)),
  /** What was warned of for this attachment. */
  warnings: texts,
  /** When, as ISO 8601; by which version of the plugin. */
  time: text,
  version: text,
});

export type AttachmentRecord = Readonly<z.infer<typeof recordSchema>>;

/** A kernel setting in a record. */
export type RecordedSetting = z.infer<typeof settingSchema>;

/** The programs of a family in a record. */
export type RecordedTools = z.infer<typeof toolsSchema>;

/** The mesh that a record is of; undefined where this version does not know it. */
export function profileOf({ profile }: AttachmentRecord): Profile | undefined {
  return profileNamed(profile);
}

/** The families that are redirected by a record. */
export function familiesIn({ rulesets }: AttachmentRecord): Family[] {
  return rulesets.map(({ family }) => family);
}

/** A netns as it is found now, on a node in this boot. */
export type Place = NetnsId & { readonly boot: string };

/**
 * Whether the record is about this netns. A number alone would not tell: the kernel gives it out again, and in another
 * boot it means nothing.
 */
export function isAbout({ netns, boot }: AttachmentRecord, place: Place): boolean {
  const isSameBoot = boot === undefined || boot === place.boot;
  return isSameBoot && isSameNetns(netns, place);
}

/** Whether one record was written after another; by the time of day only where 0.1.0 wrote one of them. */
export function isLater(one: AttachmentRecord, other: AttachmentRecord): boolean {
  const isComparable = one.boot !== undefined && one.boot === other.boot;
  const [ms, otherMs] = [one.sinceBootMs, other.sinceBootMs];
  if (isComparable && ms !== undefined && otherMs !== undefined) return ms > otherMs;
  return one.time > other.time;
}

/** The one that was written last: its rules are those of the netns. */
export function latestOf(records: readonly AttachmentRecord[]): AttachmentRecord | undefined {
  return records.reduce<AttachmentRecord | undefined>(
    (last, record) => (last === undefined || isLater(record, last) ? record : last),
    undefined,
  );
}

/**
 * The record's file name. Readable, and of one attachment only: a comma can be in none of the parts but the last.
 */
export function recordName({ network, containerId, ifName }: AttachmentKey): string {
  return `${network},${containerId},${ifName}.json`;
}

/** The longest of these that is written: file systems take 255 bytes, and 0.1.0's temporary files had five more. */
export const longestNameBytes = 250;

/** The attachment that a file of this name is about; undefined for another file. */
export function parseRecordName(name: string): AttachmentKey | undefined {
  const [, network, containerId, ifName] = /^([^,.][^,]*),([^,]+),(.+)\.json$/.exec(name) ?? [];
  if (network === undefined || containerId === undefined || ifName === undefined) return undefined;
  return { network, containerId, ifName };
}
