// Files of the state directory, as a directory that others may have had their hands on: made one level at a time, taken
// only where root alone can write, never through a link, never half. Edge; store.ts says what is in them.
import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { Fault } from "../fault.ts";

/** A file of ours is a few kilobytes; what is larger than this was not written by us. */
export const largestFileBytes = 1024 * 1024;

/**
 * Makes the directory, and those above it that are missing, for root only.
 * @throws the system's own error. Node's own recursive mkdir never comes back where the kernel makes none (/proc).
 */
export function makeDirectory(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const above = dirname(path);
    if (codeOf(error) === "EEXIST" && isDirectory(path)) return;
    if (codeOf(error) !== "ENOENT" || above === path) throw error;
    makeDirectory(above);
    makeLast(path);
  }
}

// Another process may have made it meanwhile.
function makeLast(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (codeOf(error) !== "EEXIST" || !isDirectory(path)) throw error;
  }
}

/**
 * Sees that nobody but us can put files there. A directory that is not there is fine.
 * @returns whether it is there.
 * @throws Fault io with the path and what is wrong with it.
 */
export function requireOwnDirectory(path: string): boolean {
  const stats = quietly(() => lstatSync(path, { throwIfNoEntry: false }));
  if (stats === undefined) return false;
  if (stats.isSymbolicLink()) throw refused(path, "it is a symbolic link");
  // Anything else that stands there is reported when the directory is to be made.
  if (!stats.isDirectory()) return false;
  requireOwner(path, stats);
  return true;
}

/** Throws the system's error when nothing can be written into the directory (by the dot: or when it is none). */
export function requireWritable(directory: string): void {
  accessSync(`${directory}/.`, constants.W_OK);
}

/**
 * Reads a whole file.
 * @returns undefined when it is not there.
 * @throws Fault io when it is a link, no regular file, somebody else's, or too large to be ours.
 */
export function readOwn(path: string): string | undefined {
  const fd = openOwn(path);
  if (fd === undefined) return undefined;
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw refused(path, "it is no regular file");
    requireOwner(path, stats);
    if (stats.size > largestFileBytes) throw refused(path, `it has ${stats.size} bytes`);
    return readWhole(fd, stats.size);
  } finally {
    closeSync(fd);
  }
}

// Non-blocking: of a pipe that nobody writes to.
function openOwn(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (isAbsence(error)) return undefined;
    if (codeOf(error) === "ELOOP") throw refused(path, "it is a symbolic link");
    throw error;
  }
}

function readWhole(fd: number, size: number): string {
  const bytes = Buffer.alloc(size);
  let length = 0;
  for (let got = -1; got !== 0 && length < size; length += got) {
    got = readSync(fd, bytes, length, size - length, length);
  }
  return bytes.toString("utf8", 0, length);
}

/**
 * Puts a file in the place of an older one: readers see the one or the other, whole. No fsync: what these files are about
 * does not outlive the kernel either.
 * @throws Fault io with the path and the reason; nothing is left of the attempt then.
 */
export function replaceFile(path: string, text: string): void {
  const temporary = join(dirname(path), temporaryName());
  try {
    writeNew(temporary, text);
    renameSync(temporary, path);
  } catch (error) {
    removeQuietly(temporary);
    throw new Fault("io", `${path} cannot be written`, {
      details: `${messageOf(error)}; see that there is room in its directory, and that root can write there`,
      cause: error,
    });
  }
}

const creating = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

function writeNew(path: string, text: string): void {
  const fd = openSync(path, creating, 0o600);
  try {
    const bytes = Buffer.from(text);
    // The last bytes before a disk is full are written alone.
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
  } finally {
    closeSync(fd);
  }
}

// Of this process and this moment: two writers never meet, and whose it was can be told.
function temporaryName(): string {
  const moment = process.hrtime.bigint().toString(36);
  return `.${process.pid}-${moment}${Math.random().toString(36).slice(2, 8)}.tmp`;
}

/**
 * Removes a file where its text is as expected. It is moved aside first, so that the file which is judged is the one that
 * goes; another is put back, unless there is a newer one by then.
 * @returns whether no file is there.
 */
export function removeFileIf(path: string, isExpected: (text: string) => boolean): boolean {
  const aside = join(dirname(path), temporaryName());
  try {
    renameSync(path, aside);
  } catch (error) {
    if (isAbsence(error)) return true;
    throw error;
  }
  const isGoing = isExpected(readOwn(aside) ?? "");
  if (!isGoing) putBack(aside, path);
  rmSync(aside, { force: true });
  return isGoing;
}

// By a link, which does not take the place of another file.
function putBack(aside: string, path: string): void {
  try {
    linkSync(aside, path);
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  }
}

/** Ours, with the process that wrote it; 0.1.0's of backend.json named it as well, and those of records did not. */
const temporaryPattern = /^\.(?:(\d+)-\w+|backend\.(\d+)|.+)\.tmp$/;

/** An hour: no process of ours lives so long, whosever its number is by now. */
const oldestMs = 3_600_000;

/**
 * Takes away temporary files whose writers are dead: by the process in their names, or by age. Best effort: the next sweep
 * finds what this one cannot remove.
 */
export function sweepTemporaries(directory: string): void {
  for (const name of quietly(() => readdirSync(directory)) ?? []) {
    const found = temporaryPattern.exec(name);
    if (found === null) continue;
    const path = join(directory, name);
    const pid = found[1] ?? found[2];
    if ((pid !== undefined && !isAlive(pid)) || isOld(path)) removeQuietly(path);
  }
}

function isOld(path: string): boolean {
  const stats = quietly(() => lstatSync(path));
  return stats !== undefined && Math.abs(Date.now() - stats.mtimeMs) > oldestMs;
}

function removeQuietly(path: string): void {
  quietly(() => rmSync(path, { force: true }));
}

function isAlive(pid: string): boolean {
  return quietly(() => statSync(`/proc/${pid}`)) !== undefined;
}

function requireOwner(path: string, { uid, mode }: Stats): void {
  if (uid !== process.geteuid?.()) throw refused(path, `it belongs to user ${uid}`);
  if ((mode & 0o022) !== 0) {
    throw refused(path, `others than its owner may write (mode ${(mode & 0o7777).toString(8)})`);
  }
}

function refused(path: string, problem: string): Fault {
  return new Fault("io", `${path} is not taken for ours: ${problem}`, {
    details: "whoever can write there could have rules removed or kept; root alone must own it",
  });
}

function isDirectory(path: string): boolean {
  return quietly(() => statSync(path))?.isDirectory() === true;
}

/** What failed because it is not there. */
export function isAbsence(error: unknown): boolean {
  // ENOTDIR: a part of the path is a file. ENAMETOOLONG: nothing was ever written there.
  return ["ENOENT", "ENOTDIR", "ENAMETOOLONG"].includes(codeOf(error));
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

// Where not knowing is an answer.
function quietly<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    // Not there, or not for us.
    return undefined;
  }
}
