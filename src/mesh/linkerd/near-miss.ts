// Keys of annotations that look like ours and are not: silently ignored ones have cost people days (linkerd2#5873, #8100).
import type { Annotations } from "../pod.ts";
import { configKeys, configPrefix } from "./names.ts";

/** So many are told of: annotations are many where somebody wants the log full. */
const most = 10;

/** One sentence for each key that is almost one of ours, with the one that is meant. */
export function nearMisses(annotations: Annotations): string[] {
  const notes = Object.keys(annotations).flatMap((key) => {
    const meant = meantKey(key);
    return meant === undefined ? [] : [`annotation ${key} is not known; ${meant} is`];
  });
  return notes.slice(0, most);
}

/** No key that is a slip of the pen is longer. */
const longestKey = 80;

function meantKey(key: string): string | undefined {
  if (key.length > longestKey) return undefined;
  const [, prefix, name = ""] = /^([a-z.-]*linkerd[a-z.-]*\/)([A-Za-z_-]{3,40})$/.exec(key) ?? [];
  if (prefix === configPrefix && configKeys.some((known) => known === name)) return undefined;
  const spelt = name.toLowerCase().replaceAll("_", "-");
  const meant = configKeys.find((known) => isNear(known, spelt));
  return meant === undefined ? undefined : configPrefix + meant;
}

// Equal but for one letter too many, too few, wrong, or two swapped.
function isNear(a: string, b: string): boolean {
  const at = [...a].findIndex((char, i) => char !== b[i]);
  if (at === -1) return b.length - a.length <= 1;
  const [restA, restB] = [a.slice(at), b.slice(at)];
  return (
    restA.slice(1) === restB ||
    restA === restB.slice(1) ||
    restA.slice(1) === restB.slice(1) ||
    `${restA[1]}${restA[0]}${restA.slice(2)}` === restB
  );
}
