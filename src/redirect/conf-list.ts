// Lists of ports and subnets in the conf. Strict: an entry that cannot be read makes the list a problem, and is never dropped
// (linkerd-cni logs and drops, and a port is proxied that should not be). Only an empty entry, a slip of a template that can
// mean nothing else, is passed over with a note.
import { printable } from "../text/printable.ts";
import { few } from "../text/telling.ts";
import type { NumberWord } from "./integer.ts";
import { type Read, readList, trimBlanks, type Unreadable } from "./list.ts";
import { type PortRange, readPorts } from "./port.ts";

/** What was read of a list of the conf. */
export type ConfList<T> = {
  readonly values: readonly T[];
  /** One sentence with the key and the first entry that cannot be read; none where all can be. */
  readonly problems: readonly string[];
  /** One sentence with the key and all that is read otherwise than it is written; none where nothing is. */
  readonly notes: readonly string[];
};

/** Reads the list of this key, named as its author does (`linkerd.subnets-to-ignore`). */
export function readConfList<T>(
  key: string,
  entries: readonly string[],
  read: (entry: string) => Read<T> | Unreadable,
): ConfList<T> {
  const filled = entries.filter((entry) => trimBlanks(entry) !== "");
  const { values, problems, notes } = readList(filled, read);
  const dropped = filled.length === entries.length ? [] : ["an empty entry is passed over"];
  const told = [...dropped, ...notes.map((note) => printable(note))];
  return {
    values,
    problems: problems.slice(0, 1).map((problem) => `${key}: ${printable(problem)}`),
    notes: told.length === 0 ? [] : [`${key}: ${few(told)}`],
  };
}

/** Reads a list of ports and ranges. Charts write a whole list into one string. */
export function readPortList(key: string, words: readonly NumberWord[]): ConfList<PortRange> {
  const entries = words.flatMap((word) => String(word).split(","));
  return readConfList(key, entries, readPorts);
}
