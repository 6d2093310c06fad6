// The text of a record's file, and what a file may turn out to be. Pure.
import * as z from "zod/mini";
import { parseJson } from "../text/json.ts";
import { readFormat1 } from "./format-1.ts";
import { type AttachmentRecord, recordFormat, recordSchema } from "./record.ts";

/** A file that is read: a record, or one of a release after this one, or nothing that anybody wrote as a record. */
export type Read =
  | { readonly kind: "record"; readonly record: AttachmentRecord }
  | { readonly kind: "newer"; readonly newer: Newer }
  | { readonly kind: "none" };

/** What is understood of a newer record: its form, and by which version it was written. */
export type Newer = { readonly format: number; readonly version: string };

/** The text of a record's file. */
export function renderRecord(record: AttachmentRecord): string {
  return `${JSON.stringify(record, null, 2)}\n`;
}

/** Reads a record's file, of this form or an older one. */
export function readRecord(text: string): Read {
  const value = jsonIn(text);
  const record = recordIn(value) ?? readFormat1(value);
  if (record !== undefined) return { kind: "record", record };
  const { success, data } = z.safeParse(newerSchema, value);
  return success ? { kind: "newer", newer: data } : { kind: "none" };
}

/** The record in a file; undefined where that is none of this form or an older one. */
export function parseRecord(text: string): AttachmentRecord | undefined {
  const read = readRecord(text);
  return read.kind === "record" ? read.record : undefined;
}

const newerSchema = z.object({
  format: z.int().check(z.gt(recordFormat)),
  version: z.catch(z.string(), "which it does not say"),
});

function recordIn(value: unknown): AttachmentRecord | undefined {
  const { success, data } = z.safeParse(recordSchema, value);
  return success ? data : undefined;
}

function jsonIn(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    // Cut short, or no JSON at all: it is no record, and the caller goes on as without one.
    return undefined;
  }
}
