// Keeps the records as files in the state directory, one a file. Edge.
// On tmpfs by default: after a reboot there are no netns, so there is nothing to remember.
import {
  accessSync,
  constants,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type Knowledge, noKnowledge, parseKnowledge, renderKnowledge } from "./knowledge.ts";
import {
  type AttachmentKey,
  type AttachmentRecord,
  parseRecord,
  parseRecordName,
  recordName,
  renderRecord,
} from "./record.ts";

/** An attachment that has a record, and when it was last written, in milliseconds of the epoch. */
export type Entry = { readonly key: AttachmentKey; readonly writtenMs: number };

export type Store = {
  /** The attachment's record; undefined when there is none that can be read. */
  readonly read: (key: AttachmentKey) => AttachmentRecord | undefined;
  /** Keeps the record in place of an older one: readers see the one or the other, whole. */
  readonly write: (record: AttachmentRecord) => void;
  /** Forgets the attachment; nothing to forget is fine. */
  readonly remove: (key: AttachmentKey) => void;
  /** All attachments that have a record, also one that cannot be read. */
  readonly entries: () => Entry[];
  /** What was found out about the node's backends since it booted. */
  readonly knowledge: () => Knowledge;
  /** Remembers it; another writer's may win, and then something is found out twice. */
  readonly keepKnowledge: (known: Knowledge) => void;
  /** Makes sure that records can be written; throws when they cannot. */
  readonly prepare: () => void;
};

/** The records in `<stateDir>/attachments`; the directory is made when it is first needed. */
export function openStore(stateDir: string): Store {
  const directory = join(stateDir, "attachments");
  const fileOf = (key: AttachmentKey) => join(directory, recordName(key));
  // Of the attachment and not of the process: its commands come one by one, and what a killed one left is found again.
  const temporaryOf = (key: AttachmentKey) => join(directory, `.${recordName(key)}.tmp`);
  const prepare = () => {
    for (const path of [stateDir, directory]) makeDirectory(path);
  };
  return {
    read: (key) => readRecord(fileOf(key)),
    write: (record) => {
      writeWithin(prepare, temporaryOf(record), renderRecord(record));
      // No fsync: after a power cut the netns that the record is about is gone as well.
      renameSync(temporaryOf(record), fileOf(record));
    },
    remove: (key) => {
      for (const file of [temporaryOf(key), fileOf(key)]) removeFile(file);
    },
    entries: () => namesIn(directory).flatMap((name) => entryOf(directory, name)),
    knowledge: () => {
      const text = readText(join(stateDir, "backend.json"));
      return text === undefined ? noKnowledge : parseKnowledge(text, bootId());
    },
    keepKnowledge: (known) => {
      const temporary = join(stateDir, `.backend.${process.pid}.tmp`);
      writeWithin(prepare, temporary, renderKnowledge(known, bootId()));
      renameSync(temporary, join(stateDir, "backend.json"));
    },
    prepare: () => {
      if (isWritable(directory)) return;
      prepare();
      accessSync(directory, constants.W_OK);
    },
  };
}

// The directories are there at all but the first call on a node.
function writeWithin(makeDirectories: () => void, file: string, text: string): void {
  try {
    writeFileSync(file, text, { mode: 0o600 });
  } catch (error) {
    if (!isAbsent(error)) throw error;
    makeDirectories();
    writeFileSync(file, text, { mode: 0o600 });
  }
}

// False also on a file system that is mounted to be read only, and, by the dot, for what is no directory.
function isWritable(directory: string): boolean {
  try {
    accessSync(`${directory}/.`, constants.W_OK);
    return true;
  } catch {
    // Not there, or not for us: whoever asked finds out which.
    return false;
  }
}

// Node says ENOENT for whatever keeps it from making a directory and its parents; asked for that one alone, it says what.
function makeDirectory(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    if (!isAbsent(error)) throw error;
    mkdirSync(path, { mode: 0o700 });
  }
}

function readRecord(file: string): AttachmentRecord | undefined {
  const text = readText(file);
  return text === undefined ? undefined : parseRecord(text);
}

function bootId(): string {
  return readText("/proc/sys/kernel/random/boot_id")?.trim() ?? "";
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

function removeFile(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch (error) {
    if (!isAbsent(error)) throw error;
  }
}

function entryOf(directory: string, name: string): Entry[] {
  const key = parseRecordName(name);
  const stats = statSync(join(directory, name), { throwIfNoEntry: false });
  return key === undefined || stats === undefined ? [] : [{ key, writtenMs: stats.mtimeMs }];
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if (isAbsent(error)) return [];
    throw error;
  }
}

// ENOTDIR: a part of the path is a file, so what we look for cannot be there either. ENAMETOOLONG: no such record was
// ever written.
function isAbsent(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : "";
  return code === "ENOENT" || code === "ENOTDIR" || code === "ENAMETOOLONG";
}
