// User and group ids of the proxy, whose own traffic is not redirected.
import { type Bounds, type NumberWord, readInteger } from "./integer.ts";

/** Of users and groups; the kernel keeps the number above for "none". */
const ids: Bounds = { least: 0, most: 4_294_967_294 };

/** A user's id; undefined for what is none, and for 0: half of all containers run as root, and would pass by. */
export function readUser(word: NumberWord): number | undefined {
  return readInteger(word, { ...ids, least: 1 });
}

/** A group's id; "none" for 0, however it is spelt, and for -1, which charts write; undefined for what is neither. */
export function readGroup(word: NumberWord): number | "none" | undefined {
  if (String(word) === "-1") return "none";
  const id = readInteger(word, ids);
  return id === 0 ? "none" : id;
}
