// The lock of a netns, as work on attachments takes it: from the reading of records to the last write.
import { Fault } from "../fault.ts";
import { type Entered, nameOf, type Task } from "./task.ts";

/**
 * Works in the netns while nobody else does.
 * @throws Fault try-again when another works there until no time is left, io when locks cannot be had; and what the work throws.
 */
export async function locked<T>(task: Task, here: Entered, work: () => Promise<T>): Promise<T> {
  const lock = await take(task, here);
  try {
    return await work();
  } finally {
    lock.release();
  }
}

/**
 * The same, also where locks cannot be had: for what must be taken out whatever else is wrong.
 * @throws Fault try-again as above, and what the work throws.
 */
export async function lockedIfPossible<T>(
  task: Task,
  here: Entered,
  work: () => Promise<T>,
): Promise<T> {
  const lock = await take(task, here).catch((error: unknown) => {
    if (!(error instanceof Fault) || error.kind === "try-again") throw error;
    task.log.warn({ err: error }, "the netns is worked in without its lock");
    return undefined;
  });
  try {
    return await work();
  } finally {
    lock?.release();
  }
}

async function take({ store, remainingMs }: Task, here: Entered) {
  try {
    return await store.lock(here.netns, remainingMs);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    throw new Fault(error.kind, `${nameOf(here)} cannot be worked on: ${error.message}`, {
      details: error.details,
      cause: error,
    });
  }
}

/** Waits until nobody works in the netns. @returns whether somebody did. @throws Fault try-again as above. */
export async function outlast(task: Task, here: Entered): Promise<boolean> {
  try {
    (await take({ ...task, remainingMs: () => 0 }, here)).release();
    return false;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    // Nobody can have a lock there.
    if (error.kind !== "try-again") return false;
  }
  (await take(task, here)).release();
  return true;
}
