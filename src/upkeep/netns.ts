// A netns held open for a piece of work, and let go whatever becomes of it: no command opens one in another way.

import type { Call } from "../command/call.ts";
import { Fault } from "../fault.ts";
import type { Netns, Opening } from "../netns/path.ts";

/** The netns that the call names. */
export function named({ request }: Call): Opening {
  return { path: request.netns, allowOwn: request.netnsOverride };
}

/** Works in the netns. @throws what openNetns and the work throw. */
export async function withNetns<T>(
  { deps }: Pick<Call, "deps">,
  opening: Opening,
  work: (netns: Netns) => T | Promise<T>,
): Promise<T> {
  const netns = deps.openNetns(opening);
  try {
    return await work(netns);
  } finally {
    deps.closeNetns(netns);
  }
}

/** True when a netns could not be opened because there is none, or not one of a pod: not because something kept us. */
export function isNoNetns(error: unknown): boolean {
  return error instanceof Fault && elsewhere.includes(error.kind);
}

const elsewhere: readonly string[] = ["netns-gone", "netns-unusable", "netns-own"];
