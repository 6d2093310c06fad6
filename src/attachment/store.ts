// Keeps the records as files in the state directory. Edge.
// On tmpfs by default: after a reboot there are no netns, so there is nothing to remember.
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type AttachmentKey,
  type AttachmentRecord,
  parseRecord,
  recordName,
  renderRecord,
} from "./record.ts";

export type Store = {
  /** The attachment's record; undefined when there is none that can be read. */
  readonly read: (key: AttachmentKey) => AttachmentRecord | undefined;
  /** Keeps the record in place of an older one: readers see the one or the other, whole. */
  readonly write: (record: AttachmentRecord) => void;
  /** Forgets the attachment; nothing to forget is fine. */
  readonly remove: (key: AttachmentKey) => void;
  /** All records that can be read. */
  readonly list: () => AttachmentRecord[];
};

/** The records in `<stateDir>/attachments`; the directory is made by the first write. */
export function openStore(stateDir: string): Store {
  const directory = join(stateDir, "attachments");
  const fileOf = (key: AttachmentKey) => join(directory, recordName(key));
  return {
    read: (key) => readRecord(fileOf(key)),
    write: (record) => {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      const file = fileOf(record);
      // The name of the process and not of the attachment: it is short enough, and two writers never share it.
      const temporary = join(directory, `.${process.pid}.tmp`);
      writeFileSync(temporary, renderRecord(record), { mode: 0o600 });
      // No fsync: after a power cut the netns that the record is about is gone as well.
      renameSync(temporary, file);
    },
    remove: (key) => rmSync(fileOf(key), { force: true }),
    list: () => {
      const names = namesIn(directory).filter((name) => name.endsWith(".json"));
      return names.flatMap((name) => readRecord(join(directory, name)) ?? []);
    },
  };
}

function readRecord(file: string): AttachmentRecord | undefined {
  try {
    return parseRecord(readFileSync(file, "utf8"));
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
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
