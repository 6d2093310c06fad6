// Reads single annotations of a pod: whose value counts, whether it may be set at all, and what becomes of what cannot be
// read. Anyone who may make a pod can write them, so each is bounded, read in linear time, and quoted with care.

import {
  type Read,
  type ReadList,
  readList,
  trimBlanks,
  type Unreadable,
} from "../../redirect/list.ts";
import { printable } from "../../text/printable.ts";
import { few } from "../../text/telling.ts";
import type { PodFacts } from "../pod.ts";
import type { Refusal } from "../profile.ts";
import { type ConfigKey, configPrefix, namespaceKeys } from "./names.ts";
import { isMarked } from "./pod.ts";

/** A pod whose annotations are read, what its node's owner wishes, and what there is to say of what was found. */
export type Reader = {
  readonly pod: PodFacts;
  /** Keys (without prefix) that may not be set. */
  readonly denied: readonly string[];
  /** What cannot be read is passed over with a note, entry by entry; numbers may have a plus sign, as for linkerd-init. */
  readonly dropEntries: boolean;
  readonly refusals: Refusal[];
  /** Sentences for the log. */
  readonly notes: string[];
};

/** Reads one value, or one entry of a list. */
export type ReadOne<T> = (text: string) => Read<T> | Unreadable;

/** The annotation's value; undefined when it is not set, empty, or cannot be honoured. */
export function readOne<T>(reader: Reader, key: ConfigKey, read: ReadOne<T>): T | undefined {
  const said = find(reader, key);
  if (said === undefined || said.text === "") return undefined;
  const result = read(said.text);
  const list = "value" in result ? { values: [result.value] } : { problems: [result.problem] };
  return settle(reader, said, { values: [], problems: [], notes: [], ...list })?.[0];
}

/** The annotation's entries; undefined when it is not set or cannot be honoured. */
export function readMany<T>(
  reader: Reader,
  key: ConfigKey,
  read: ReadOne<T>,
): readonly T[] | undefined {
  const said = find(reader, key);
  if (said === undefined || said.text === "") return said === undefined ? undefined : [];
  const entries = [...new Set(said.text.split(",").map(trimBlanks))];
  if (entries.length <= mostEntries) return settle(reader, said, readList(entries, read));
  const problem = `has more than ${mostEntries} entries`;
  reader.refusals.push({ annotation: said.annotation, problem });
  return undefined;
}

/** Of more ports or subnets the rules would be too long to load. */
const mostEntries = 4_000;

function settle<T>(
  reader: Reader,
  { annotation }: Said,
  list: ReadList<T>,
): readonly T[] | undefined {
  const { values, problems, notes } = list;
  const [problem] = problems;
  if (problem !== undefined && !reader.dropEntries) {
    reader.refusals.push({ annotation, problem: printable(problem) });
    return undefined;
  }
  if (problem !== undefined) reader.notes.push(`${annotation}: passed over: ${few(problems)}`);
  if (notes.length > 0) reader.notes.push(`${annotation}: ${few(notes)}`);
  return values;
}

/** An annotation that is set, as it is named to whom it may concern. */
type Said = { readonly annotation: string; readonly text: string };

/** All annotations of a pod together are no longer, in Kubernetes. */
const longestText = 262_144;

function find(reader: Reader, key: ConfigKey): Said | undefined {
  const said = spoken(reader.pod, key);
  if (said === undefined) return undefined;
  const problem = forbidden(reader, key, said);
  if (problem === undefined) return unsigned(reader, key, said);
  if (said.text !== "") reader.refusals.push({ annotation: said.annotation, problem });
  return undefined;
}

// What the injector has marked carries all that counts, an empty list too. Of an older pod an empty value says nothing,
// and its namespace is asked, as linkerd-cni does.
function spoken(pod: PodFacts, key: ConfigKey): Said | undefined {
  const annotation = configPrefix + key;
  const text = pod.annotations[annotation];
  if (isMarked(pod.annotations)) return text === undefined ? undefined : { annotation, text };
  if (text !== undefined && text !== "") return { annotation, text };
  const inherited = namespaceKeys.includes(key) ? (pod.namespaceAnnotations[annotation] ?? "") : "";
  return inherited === ""
    ? undefined
    : { annotation: `${annotation} of the namespace`, text: inherited };
}

function forbidden({ denied }: Reader, key: ConfigKey, { text }: Said): string | undefined {
  if (denied.includes(key)) return "is not allowed in this namespace";
  return text.length > longestText ? `is longer than ${longestText} characters` : undefined;
}

function unsigned({ dropEntries, notes }: Reader, key: ConfigKey, said: Said): Said {
  if (!dropEntries || !/(ports?|[ug]id)$/.test(key)) return said;
  const text = said.text.replaceAll(/(^|[,-])\+(?=[0-9])/g, "$1");
  if (text !== said.text) notes.push(`${said.annotation}: plus signs are passed over`);
  return { ...said, text };
}
