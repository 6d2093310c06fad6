// Reads one section of the conf by its schema, key by key. A key that cannot be read gets its default, and the fault is
// reported.
import * as z from "zod/mini";
import type { JsonObject } from "./conf.ts";
import { expectationOf } from "./schema-issue.ts";

/** What was read of a section. */
export type Section<T> = {
  readonly values: T;
  /** One sentence for each value that cannot be read, with its path and what was found. */
  readonly faults: readonly string[];
  /** Keys that the schema does not have, with their path. */
  readonly unknownKeys: readonly string[];
};

/**
 * Reads a section. `prefix` stands before its keys in sentences (`sluice.`). Each key of the schema has a default, or is
 * optional: without it, what stands in its place could not be read either.
 */
export function readSection<Schema extends z.ZodMiniObject>(
  schema: Schema,
  given: JsonObject,
  prefix: string,
): Section<z.output<Schema>> {
  const unknown = Object.keys(given).filter((key) => !Object.hasOwn(schema.shape, key));
  const unknownKeys = unknown.map((key) => prefix + key);
  const result = z.safeParse(schema, given, { reportInput: true });
  if (result.success) return { values: result.data, faults: [], unknownKeys };
  const { issues } = result.error;
  const { values } = readSection(schema, issues.reduce(withoutWrong, given), prefix);
  return { values, faults: issues.map((issue) => prefix + faultOf(issue)), unknownKeys };
}

function withoutWrong(given: JsonObject, { path: [key] }: z.core.$ZodIssue): JsonObject {
  return Object.fromEntries(Object.entries(given).filter(([other]) => other !== key));
}

function faultOf(issue: z.core.$ZodIssue): string {
  return `${issue.path.join(".")}: ${expectationOf(issue)}, found ${shown(issue.input)}`;
}

/** The most characters of a value that are told. */
const longest = 200;

/** A value that was found, as JSON; cut where it is long. */
export function shown(value: unknown): string {
  const text = String(JSON.stringify(value));
  return text.length > longest ? `${text.slice(0, longest)}...` : text;
}
