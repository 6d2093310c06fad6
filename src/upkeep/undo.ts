// After an ADD that failed: the netns and the record as they were before it, or, where that cannot be brought about or not
// be seen, the record that says what was intended, by which DEL finds whatever is there.
import { type AttachmentRecord, intentOf } from "../attachment/record.ts";
import { type Call, keyOf } from "../command/call.ts";
import { Fault } from "../fault.ts";
import { BatchError } from "../netfilter/iptables/client.ts";
import { type Own, ownOf } from "../netfilter/own.ts";
import type { Netns } from "../netns/path.ts";
import { chooseBackend } from "../node/backend.ts";
import type { Attached } from "./attached.ts";
import { findOwn, removeSpots } from "./clean.ts";
import { type Redirected, redirect } from "./redirect.ts";
import { giveBackSettings } from "./settings.ts";

/** An ADD that failed. */
export type Failed = {
  readonly netns: Netns;
  readonly error: unknown;
  /** The record as it was last written. */
  readonly record: AttachmentRecord;
  readonly before: Attached;
  /** What was done to the rules, when that had been brought to its end. */
  readonly done: Made | undefined;
  /** The rules are known to be as they were, since those who failed took back what they had made. */
  readonly isAsBefore: boolean;
  /** A kernel setting is, or may be, another than before. */
  readonly isSet: boolean;
};

type Made = Pick<Redirected, "choice" | "created">;

/** Less is not enough to look in. */
const leastMs = 100;

/** Takes back what can be. Never throws: what goes wrong is told to the log. */
export async function undo(call: Call, failed: Failed): Promise<void> {
  try {
    const isNothing = failed.isAsBefore || wasNeverThere(failed.error);
    const isUndone = isNothing || (await takeBack(call, failed));
    if (!isUndone) call.log.warn({}, "what ADD did may not be undone; the record is kept for DEL");
    else if (failed.before.earlier === undefined) call.store.remove(keyOf(call));
    else call.store.write(failed.before.earlier);
  } catch (error) {
    call.log.warn({ err: error }, "what ADD did could not be undone; the record is kept for DEL");
  }
}

// To the rules of those that were here before, or to none. True when it is seen to be so.
async function takeBack(call: Call, failed: Failed): Promise<boolean> {
  const { netns, record, before, error } = failed;
  const { latest } = before;
  // A child that was ended may have set it or not.
  const isSet = failed.isSet || (error instanceof Fault && error.kind === "try-again");
  if (call.remainingMs() < leastMs) return false;
  if (latest !== undefined) await bringBack(call, netns, latest);
  else if (failed.done !== undefined) {
    await removeMade(call, netns, { ...failed.done, own: ownOf(record.rulesets) });
  }
  if (isSet) {
    const [setting] = latest === undefined ? [] : (intentOf(latest)?.settings ?? []);
    const closeWaitBefore = setting?.value ?? record.closeWaitBefore;
    await giveBackSettings(call, netns, { ...record, closeWaitBefore });
  }
  if (latest !== undefined) return true;
  const { backend, intent } = record;
  const written = { backend, families: intent.families, own: ownOf(record.rulesets) };
  return (await findOwn(call, netns, written)).length === 0;
}

async function bringBack(call: Call, netns: Netns, latest: AttachmentRecord): Promise<void> {
  const { rulesets, intent } = latest;
  const chosen = await chooseBackend(call, intent.families, latest);
  const required = intent.families;
  await redirect(call, { netns, rulesets, required, isKnown: true }, chosen);
}

// What was there without a record stays: it may be all that redirects.
async function removeMade(
  call: Call,
  netns: Netns,
  { choice, created, own }: Made & { readonly own: Own },
): Promise<void> {
  const { backend } = choice;
  const spots = created.map((family) => ({ backend, family }));
  await removeSpots(call, netns, { own, spots });
}

// The child that would have written did not come as far as the netns.
function wasNeverThere(error: unknown): boolean {
  return error instanceof BatchError && !error.isPassing && error.restored.length === 0;
}
