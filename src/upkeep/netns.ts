// A netns held open for a piece of work, and closed afterwards even if the work fails: no other code opens one.
import { Fault } from "../fault.ts";
import type { Netns, Opening } from "../netns/path.ts";
import type { Entered, Subject, Task } from "./task.ts";

/** Works in the netns. @throws what openNetns and the work throw. */
export async function withNetns<T>(
  { deps }: Pick<Task, "deps">,
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

/** Works on the attachment, in its netns. @throws as withNetns does. */
export function enter<T>(
  task: Pick<Task, "deps">,
  subject: Subject,
  work: (here: Entered) => Promise<T>,
): Promise<T> {
  return withNetns(task, subject.netns, (netns) => work({ ...subject, netns }));
}

/** True when a netns could not be opened because there is none, or not one of a pod: not because something kept us. */
export function isNoNetns(error: unknown): boolean {
  return error instanceof Fault && elsewhere.includes(error.kind);
}

const elsewhere: readonly string[] = ["netns-gone", "netns-unusable", "netns-own"];
