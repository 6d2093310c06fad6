// The record of one attachment: what was intended for it, where, and through which backend. Pure: shape, name, text.
// CHECK compares with it, DEL cleans by it, GC goes through all of them.
import * as z from "zod/mini";
import type { Intent, Profile } from "../mesh/profile.ts";
import { defaultProfile, rulesetOfFormat1 } from "../mesh/profiles.ts";
import {
  backends,
  builtinChains,
  families,
  protocols,
  type Ruleset,
  tableNames,
} from "../netfilter/table.ts";
import { isSameNetns, type NetnsId } from "../netns/identity.ts";
import { parseJson } from "../text/json.ts";

/** What identifies an attachment (spec: container ID and interface, within a network). */
export type AttachmentKey = {
  readonly network: string;
  readonly containerId: string;
  readonly ifName: string;
};

const text = z.string();
const number = z.number();

const texts = z.readonly(z.array(text));

/** One table's part of a ruleset; what was stale is gone when the record counts. */
const tableSchema = z.object({
  name: z.enum(tableNames),
  chains: z.readonly(z.array(z.object({ name: text, rules: texts }))),
  placed: z.readonly(z.array(z.object({ hook: z.enum(builtinChains.mangle), rule: text }))),
  aliases: z.exactOptional(texts),
});

const rulesetSchema = z.object({
  family: z.enum(families),
  tables: z.readonly(z.array(tableSchema)),
  traffic: z.object({
    protocols: z.readonly(z.array(z.enum(protocols))),
    loopback: z.boolean(),
  }),
});

/** Rulesets as 0.1.0 wrote them. */
const ruleset1Schema = z.object({
  family: z.enum(families),
  chains: z.array(
    z.object({ name: text, hook: z.enum(["PREROUTING", "OUTPUT"]), jump: text, rules: texts }),
  ),
});

const recordSchema = z.object({
  /** Of the record's own form: another number is another form. What 0.1.0 did not write is optional. */
  format: z.literal(1),
  /** `intended` from before the first rule until the last step of ADD is done. */
  state: z.optional(z.enum(["intended", "applied"])),
  network: text,
  containerId: text,
  ifName: text,
  pod: z.object({ namespace: text, name: text }),
  netns: z.object({ path: text, device: number, inode: number }),
  /** The node's boot in which it was written, and when, in milliseconds since then: no clock that is set changes these. */
  boot: z.optional(text),
  sinceBootMs: z.optional(number),
  /** What the netns' close-wait setting was before the first of us changed it. */
  closeWaitBefore: z.optional(text),
  /** What was redirected, for these families, and in the words of its mesh. */
  intent: z.looseObject({ families: z.array(z.enum(families)).check(z.minLength(1)) }),
  /**
   * Families that are wanted and were left out, since the netns did not speak them: CHECK looks whether it does now. Not there:
   * none was left out, or the record is of a version that did not look.
   */
  open: z.optional(z.array(z.enum(families))),
  /** The rules as they were written: CHECK holds a pod against these, also after an upgrade that spells anew. */
  rulesets: z.array(z.union([rulesetSchema, ruleset1Schema])),
  backend: z.enum(backends),
  backendReason: text,
  /** When, as ISO 8601; by which version of the plugin. */
  time: text,
  version: text,
});

export type AttachmentRecord = Omit<z.infer<typeof recordSchema>, "rulesets"> & {
  readonly rulesets: readonly Ruleset[];
};

type Intended = Pick<AttachmentRecord, "intent">;

/** The mesh that a record is of. Records of this format name none. */
export function profileOf(_: Intended): Profile {
  return defaultProfile;
}

/** The intent that a record keeps; undefined where it is none of its mesh's. */
export function intentOf(record: Intended): Intent | undefined {
  const { families: wanted, ...words } = record.intent;
  return profileOf(record).readIntent(words, wanted);
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

/** The text of a record's file. */
export function renderRecord(record: AttachmentRecord): string {
  return `${JSON.stringify(record, null, 2)}\n`;
}

/** Reads a record's file; undefined when it is none (cut short, of another form): then there is no record. */
export function parseRecord(text: string): AttachmentRecord | undefined {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    // A file that is no JSON is no record; whoever asked goes on as without one.
    return undefined;
  }
  const result = z.safeParse(recordSchema, value);
  if (!result.success || intentOf(result.data) === undefined) return undefined;
  const rulesets = result.data.rulesets.map((one) =>
    "chains" in one ? rulesetOfFormat1(one) : one,
  );
  return { ...result.data, rulesets };
}
