// What a redirect writes down of itself in the attachment's record, and what that may fail of.
import { resolve } from "node:path";
import {
  type AttachmentKey,
  type AttachmentRecord,
  longestNameBytes,
  type RecordedTools,
  recordFormat,
  recordName,
} from "../attachment/record.ts";
import { withBefores } from "../attachment/settings.ts";
import { Fault } from "../fault.ts";
import type { Intent } from "../mesh/profile.ts";
import type { BackendChoice } from "../netfilter/iptables/tools.ts";
import type { Ruleset } from "../netfilter/table.ts";
import { version } from "../version.ts";
import type { Applied } from "./apply.ts";
import type { Attached } from "./attached.ts";
import { type Entered, nameOf, type Task } from "./task.ts";

/** What is about to be done, through which backend, and what the netns' attachments were before. */
export type Intended = {
  /** The mesh's name. */
  readonly profile: string;
  readonly intent: Intent;
  readonly choice: BackendChoice;
  readonly before: Attached;
};

/** The record from before the first rule. */
export function intendedRecord(task: Task, here: Entered, intended: Intended): AttachmentRecord {
  const { profile, intent, choice, before } = intended;
  const { path, device, inode } = here.netns;
  const { boot, sinceBootMs } = task.store.moment();
  return {
    format: recordFormat,
    state: "intended",
    ...here.key,
    pod: here.pod,
    netns: { path: resolve(path), device, inode },
    ...(boot === "" ? {} : { boot, sinceBootMs }),
    profile,
    intent: intent.words,
    settings: withBefores(intent.settings, before.befores),
    ...ruled(intent.rulesets, choice),
    warnings: [],
    time: new Date(task.deps.clock.epochMs()).toISOString(),
    version,
  };
}

/** What was done in the end. */
export type Done = Pick<Applied, "choice" | "left" | "versions"> & {
  /** As they are now. */
  readonly rulesets: readonly Ruleset[];
  readonly warnings: readonly string[];
};

/** The record of work that is done. */
export function appliedRecord(intended: AttachmentRecord, done: Done): AttachmentRecord {
  const open = done.left.map(({ family }) => family);
  return {
    ...intended,
    state: "applied",
    ...ruled(done.rulesets, done.choice, done.versions),
    ...(open.length === 0 ? {} : { open }),
    warnings: [...done.warnings],
  };
}

type Ruled = Pick<AttachmentRecord, "rulesets" | "backend" | "backendReason" | "tools">;

// What a record says of the rules themselves.
function ruled(
  rulesets: readonly Ruleset[],
  { backend, reason, tools }: BackendChoice,
  versions: Applied["versions"] = new Map(),
): Ruled {
  const used = rulesets.flatMap(({ family }): RecordedTools[] => {
    const found = tools.get(family);
    if (found === undefined) return [];
    const version = versions.get(family);
    const { restore, save } = found;
    return [{ family, restore, save, ...(version === undefined ? {} : { version }) }];
  });
  return { rulesets: [...rulesets], backend, backendReason: reason, tools: used };
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
