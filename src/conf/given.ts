// The conf's document before a schema sees it: what counts as not set, and where its sections are.
import type * as z from "zod/mini";
import { isJsonObject, type JsonObject } from "../cni/conf.ts";
import { readSection, type Section, shown } from "../cni/section.ts";

/** Reads the section of this key. One that is no object is told, and read as an empty one. */
export function readPart<Schema extends z.ZodMiniObject>(
  document: JsonObject,
  key: string,
  schema: Schema,
): Section<z.output<Schema>> {
  const part = partIn(document, key);
  const section = readSection(schema, part.object, `${key}.`);
  return { ...section, faults: [...part.faults, ...section.faults] };
}

/** A section as it was found. */
export type Part = { readonly object: JsonObject; readonly faults: readonly string[] };

/** The section of this key; empty where there is none, and where it is no object, which is told. */
export function partIn(document: JsonObject, key: string): Part {
  const value = document[key];
  if (value === undefined) return { object: {}, faults: [] };
  if (isJsonObject(value)) return { object: value, faults: [] };
  return { object: {}, faults: [expectedObject(key, value)] };
}

/** The same for a section that every conf must have. */
export function requiredPartIn(document: JsonObject, key: string): Part {
  if (document[key] !== undefined) return partIn(document, key);
  return { object: {}, faults: [expectedObject(key, undefined)] };
}

function expectedObject(key: string, value: unknown): string {
  return `${key}: expected object, found ${shown(value)}`;
}

/** The document without what is null, as deep as our keys go: `null` is not set, everywhere. */
export function withoutNulls(document: JsonObject): JsonObject {
  const parts = Object.entries(document).map(([key, value]) => [key, withoutNull(value, 3)]);
  return Object.fromEntries(parts.filter(([, value]) => value !== null));
}

function withoutNull(value: unknown, depth: number): unknown {
  if (depth === 0) return value;
  if (Array.isArray(value)) return value.filter((entry) => entry !== null);
  if (!isJsonObject(value)) return value;
  const set = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(set.map(([key, member]) => [key, withoutNull(member, depth - 1)]));
}
