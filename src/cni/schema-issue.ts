// Says in our words what a schema expected: the schema library's small form brings no texts of its own.
import type * as z from "zod/mini";

/** `expected one of "a", "b"`, as a message to the author of the value. */
export function expectationOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return `expected ${kinds.get(issue.expected) ?? issue.expected}`;
    case "invalid_value":
      return `expected ${oneOf(issue.values.map((value) => JSON.stringify(value)))}`;
    case "invalid_union":
      return `expected ${issue.errors.flat().map(kindOf).join(" or ")}`;
    case "too_small":
      return `expected at least ${issue.minimum}`;
    case "too_big":
      return `expected at most ${issue.maximum}`;
    default:
      return issue.message;
  }
}

/** The library's names for types that JSON calls otherwise. */
const kinds: ReadonlyMap<string, string> = new Map([
  ["record", "object"],
  ["int", "whole number"],
]);

function kindOf(issue: z.core.$ZodIssue): string {
  return expectationOf(issue).replace(/^expected /, "");
}

function oneOf(values: readonly (string | undefined)[]): string {
  return values.length === 1 ? `${values[0]}` : `one of ${values.join(", ")}`;
}
