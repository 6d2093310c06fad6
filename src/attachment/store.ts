// Keeps each record as a file of its own in the state directory. Edge.
// On tmpfs by default: after a reboot there are no netns, so there is nothing to remove.
import { existsSync, lstatSync, readdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { Fault } from "../fault.ts";
import { bootId } from "../state/boot.ts";
import {
  isAbsence,
  largestFileBytes,
  makeDirectory,
  readOwn,
  removeFileIf,
  replaceFile,
  requireOwnDirectory,
  requireWritable,
  sweepTemporaries,
} from "../state/file.ts";
import { type Lock, sweepLocks, takeLock } from "./lock.ts";
import { NewerRecordError } from "./newer.ts";
import {
  type AttachmentKey,
  type AttachmentRecord,
  parseRecordName,
  recordName,
} from "./record.ts";
import { parseRecord, readRecord, renderRecord } from "./record-text.ts";

/** An attachment that has a record, and when it was last written, in milliseconds of the epoch. */
export type Entry = { readonly key: AttachmentKey; readonly writtenMs: number };

/** A boot of the node ("" where the kernel does not tell which), and the milliseconds since then (CLOCK_MONOTONIC). */
export type Moment = { readonly boot: string; readonly sinceBootMs: number };

/**
 * The records. Any of these throws Fault io, with the path, where others than root can write them; those that read
 * NewerRecordError for a record of a later release.
 */
export type Store = {
  /**
   * The attachment's record; undefined when there is none, or one that cannot be understood.
   * @throws Fault io when what is there is not ours, or no file; the system's error when it cannot be read.
   */
  readonly read: (key: AttachmentKey) => AttachmentRecord | undefined;
  /**
   * Keeps the record in place of an older one: readers see the one or the other, whole.
   * @throws Fault io when it cannot be written; what was there before is there still.
   */
  readonly write: (record: AttachmentRecord) => void;
  /** Forgets the attachment, whatever is in its file; nothing to forget is fine. */
  readonly remove: (key: AttachmentKey) => void;
  /** Takes away what stands in the place of its record and is none: not a record that an ADD beside us has just written. */
  readonly removeNone: (key: AttachmentKey) => void;
  /**
   * Forgets it where this is still its record: not where an ADD beside us has written another.
   * @returns whether it is forgotten.
   */
  readonly removeThis: (record: AttachmentRecord) => boolean;
  /** All attachments that have a record, also one that cannot be read. */
  readonly entries: () => Entry[];
  /** The records of a container's attachments, by their files' names. What is no record is left out. */
  readonly ofContainer: (containerId: string) => AttachmentRecord[];
  /** The records that name a netns of this number, whichever it was. What is no record is left out. */
  readonly ofInode: (inode: number) => AttachmentRecord[];
  /** Now, by the node's boot: what a record is stamped with. */
  readonly moment: () => Moment;
  /** Makes sure that records can be written; throws when they cannot. */
  readonly prepare: () => void;
  /**
   * Takes the netns' lock, or waits for it: it is held while rules in a netns are changed, since two attachments may share one, and
   * processes beside the plugin may work there. It ends with the process at the latest.
   * @throws Fault `try-again` when it is held until no time is left, `io` when the directory does not take locks.
   */
  readonly lock: (netns: AttachmentRecord["netns"], remainingMs: () => number) => Promise<Lock>;
  /** Takes away what writers and holders of locks left that were killed. */
  readonly sweep: () => void;
};

/** The records in `<stateDir>/attachments`; the directory is made when it is first needed. */
export function openStore(stateDir: string): Store {
  const top = resolve(stateDir);
  const directory = join(top, "attachments");
  const locks = join(top, "locks");
  const fileOf = (key: AttachmentKey) => join(directory, recordName(key));
  const isThere = () => requireOwnDirectory(top) && requireOwnDirectory(directory);
  const names = () => (isThere() ? namesIn(directory) : []);
  const prepare = () => {
    if (!isThere()) for (const path of [top, directory]) makeDirectory(path);
    requireWritable(directory);
  };
  return {
    read: (key) => (isThere() ? recordIn(directory, recordName(key)) : undefined),
    write: (record) => {
      prepare();
      replaceFile(fileOf(record), readable(record));
    },
    remove: (key) => {
      if (!isThere()) return;
      removeFile(fileOf(key));
      removeFile(oldTemporary(directory, key));
    },
    removeNone: (key) => {
      if (!isThere()) return;
      const isNone = (text: string) => readRecord(text).kind === "none";
      if (existsSync(fileOf(key))) removeFileIf(fileOf(key), isNone);
      removeFile(oldTemporary(directory, key));
    },
    removeThis: (record) => {
      const isThis = (text: string) => isDeepStrictEqual(parseRecord(text), record);
      return !isThere() || removeFileIf(fileOf(record), isThis);
    },
    entries: () => names().flatMap((name) => entryOf(directory, name)),
    ofContainer: (containerId) =>
      names()
        .filter((name) => parseRecordName(name)?.containerId === containerId)
        .flatMap((name) => readableRecord(directory, name, "")),
    ofInode: (inode) =>
      names()
        .flatMap((name) => readableRecord(directory, name, String(inode)))
        .filter(({ netns }) => netns.inode === inode),
    moment: () => ({
      boot: bootId(),
      sinceBootMs: Number(process.hrtime.bigint() / 1_000n) / 1_000,
    }),
    prepare,
    lock: async ({ path, device, inode }, remainingMs) => {
      requireOwnDirectory(top);
      return await takeLock(locks, {
        key: `${device}-${inode}`,
        what: `netns ${path}`,
        remainingMs,
      });
    },
    sweep: () => {
      if (isThere()) for (const path of [top, directory]) sweepTemporaries(path);
      if (requireOwnDirectory(top) && requireOwnDirectory(locks)) sweepLocks(locks);
    },
  };
}

// What our own schema does not read back would be no record to the DEL that comes for it.
function readable(record: AttachmentRecord): string {
  const text = renderRecord(record);
  if (Buffer.byteLength(text) <= largestFileBytes && parseRecord(text) !== undefined) return text;
  throw new Fault("io", `the record ${recordName(record)} could not be read again`, {
    details: `it would have ${Buffer.byteLength(text)} bytes; at most ${largestFileBytes}`,
  });
}

// What 0.1.0 left when it was killed.
function oldTemporary(directory: string, key: AttachmentKey): string {
  return join(directory, `.${recordName(key)}.tmp`);
}

function recordIn(directory: string, name: string): AttachmentRecord | undefined {
  const text = readOwn(join(directory, name));
  return text === undefined ? undefined : recordOf(name, text);
}

// A file that is about another attachment than its name says was put there by somebody else.
function recordOf(name: string, text: string): AttachmentRecord | undefined {
  const read = readRecord(text);
  if (read.kind === "newer") throw new NewerRecordError(name, read.newer);
  return read.kind === "record" && recordName(read.record) === name ? read.record : undefined;
}

// Parsed only where the text says what is looked for: there may be hundreds. What a newer one says is not known: it may be
// about what is asked, and the error says so.
function readableRecord(directory: string, name: string, text: string): AttachmentRecord[] {
  if (parseRecordName(name) === undefined) return [];
  try {
    const found = readOwn(join(directory, name));
    const record = found?.includes(text) === true ? recordOf(name, found) : undefined;
    return record === undefined ? [] : [record];
  } catch (error) {
    if (error instanceof NewerRecordError) throw error;
    // Another attachment's bad file is told by the commands about that one.
    return [];
  }
}

function removeFile(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch (error) {
    if (!isAbsence(error)) throw error;
  }
}

function entryOf(directory: string, name: string): Entry[] {
  const key = parseRecordName(name);
  const stats = lstatSync(join(directory, name), { throwIfNoEntry: false });
  return key === undefined || stats === undefined ? [] : [{ key, writtenMs: stats.mtimeMs }];
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if (isAbsence(error)) return [];
    throw error;
  }
}
