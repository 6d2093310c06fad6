// What a redirect writes down of itself in the attachment's record, and what that may fail of.
import { resolve } from "node:path";
import {
  type AttachmentKey,
  type AttachmentRecord,
  longestNameBytes,
  recordName,
} from "../attachment/record.ts";
import { Fault } from "../fault.ts";
import { familiesOf, type Intent } from "../mesh/profile.ts";
import type { Left } from "../netfilter/converge/left-out.ts";
import type { BackendChoice } from "../netfilter/iptables/tools.ts";
import { version } from "../version.ts";
import type { Attached } from "./attached.ts";
import { type Entered, nameOf, type Task } from "./task.ts";

/** What is about to be done, through which backend, and what the netns' attachments were before. */
export type Intended = {
  readonly intent: Intent;
  readonly choice: BackendChoice;
  readonly before: Attached;
};

/** The record from before the first rule. */
export function intendedRecord(task: Task, here: Entered, intended: Intended): AttachmentRecord {
  const { intent, choice, before } = intended;
  const { path, device, inode } = here.netns;
  const { closeWaitBefore } = before;
  const { boot, sinceBootMs } = task.store.moment();
  return {
    format: 1,
    state: "intended",
    ...here.key,
    pod: here.pod,
    netns: { path: resolve(path), device, inode },
    ...(boot === "" ? {} : { boot, sinceBootMs }),
    ...(closeWaitBefore === undefined ? {} : { closeWaitBefore }),
    ...ruled(intent, choice),
    time: new Date(task.deps.clock.epochMs()).toISOString(),
    version,
  };
}

/** What was done in the end. */
export type Done = {
  readonly intent: Intent;
  readonly choice: BackendChoice;
  readonly left: readonly Left[];
};

/** The record of work that is done. */
export function appliedRecord(intended: AttachmentRecord, done: Done): AttachmentRecord {
  const { intent, choice, left } = done;
  const open = left.map(({ family }) => family);
  return {
    ...intended,
    state: "applied",
    ...ruled(intent, choice),
    ...(open.length === 0 ? {} : { open }),
  };
}

// What a record says of the rules themselves.
function ruled(
  intent: Intent,
  { backend, reason }: BackendChoice,
): Pick<AttachmentRecord, "intent" | "rulesets" | "backend" | "backendReason"> {
  return {
    intent: { families: familiesOf(intent), ...intent.words },
    rulesets: [...intent.rulesets],
    backend,
    backendReason: reason,
  };
}

/** Does what has to do with the record. @throws what the work does; of a Fault it is told whose record it is. */
export function recording<T>(here: Entered, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    throw new Fault(error.kind, `${nameOf(here)} cannot be recorded: ${error.message}`, {
      details: error.details,
      cause: error,
    });
  }
}

/** Sees that a record can have its name; only the network's part of it has no bound of its own. @throws Fault invalid-conf. */
export function requireName(key: AttachmentKey): void {
  const excess = Buffer.byteLength(recordName(key)) - longestNameBytes;
  if (excess <= 0) return;
  throw new Fault("invalid-conf", "network name is too long", {
    details: `by ${excess} characters, for a file that is named after network, container and interface`,
  });
}
