// The record of one attachment: what was intended for it, where, and through which backend. Pure: shape, name, text.
// CHECK compares with it, DEL cleans by it, GC goes through all of them.
import * as z from "zod/mini";
import { backends, families } from "../netfilter/table.ts";
import { intentSchema } from "../redirect/intent.ts";

/** What identifies an attachment (spec: container ID and interface, within a network). */
export type AttachmentKey = {
  readonly network: string;
  readonly containerId: string;
  readonly ifName: string;
};

const text = z.string();
const number = z.number();

const recordSchema = z.object({
  /** Of the record's own form: another number is another form. */
  format: z.literal(1),
  network: text,
  containerId: text,
  ifName: text,
  pod: z.object({ namespace: text, name: text }),
  netns: z.object({ path: text, device: number, inode: number }),
  intent: intentSchema,
  /** The rules as they were written: CHECK holds a pod against these, also after an upgrade that spells anew. */
  rulesets: z.array(
    z.object({
      family: z.enum(families),
      chains: z.array(
        z.object({
          name: text,
          hook: z.enum(["PREROUTING", "OUTPUT"]),
          jump: text,
          rules: z.array(text),
        }),
      ),
    }),
  ),
  backend: z.enum(backends),
  backendReason: text,
  /** When, as ISO 8601; by which version of the plugin. */
  time: text,
  version: text,
});

export type AttachmentRecord = z.infer<typeof recordSchema>;

/**
 * The record's file name. Readable, and of one attachment only: a comma can be in none of the parts but the last.
 */
export function recordName({ network, containerId, ifName }: AttachmentKey): string {
  return `${network},${containerId},${ifName}.json`;
}

/** The longest of these that the store can write: file systems take 255 bytes, and its temporary file has five more. */
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
    value = JSON.parse(text);
  } catch {
    // A file that is no JSON is no record; whoever asked goes on as without one.
    return undefined;
  }
  const result = z.safeParse(recordSchema, value);
  return result.success ? result.data : undefined;
}
