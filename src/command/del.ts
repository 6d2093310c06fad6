// DEL: takes out what ADD put in, and forgets the attachment. Lenient: libcni stops the whole chain at the first DEL that
// fails, which leaks the addresses of the plugins before us, so nothing that can be missing or wrong here is an error.
import { clean } from "../upkeep/clean.ts";
import type { Call, Told } from "./call.ts";

/**
 * Cleans up after the attachment. The record stays where its netns is still there and is not known to be clean: a later DEL
 * goes by it.
 */
export async function del(call: Call, told: Told): Promise<string> {
  const { changed } = await clean(call, call.subject);
  if (changed !== undefined) told.changed = changed;
  call.store.sweep();
  return "";
}
