// The log's file, which many processes share: each opens it once, adds whole lines, and turns it over when it is full. Edge.
// Root writes here, so the file must be nobody else's: no link is followed, and owner, kind and mode are looked at.
import {
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmdirSync,
  type Stats,
  statSync,
  writeSync,
} from "node:fs";

/** The file is turned over (to `<path>.1`) at this size: two of them are all that a node gives for it. */
const largestBytes = 10 * 1024 * 1024;

export type LogFile = {
  /** Adds a line, at once. A full or read-only disk is no error of the command: then the line is not there. */
  readonly append: (line: string) => void;
};

/**
 * Opens the file at `path`, and makes it where there is none, for its user alone.
 * @throws Error that names the path and says what is wrong: what the system says, or that it is no file of ours.
 */
export function openLogFile(path: string): LogFile {
  let fd = openOwn(path);
  return {
    append: (line) => {
      try {
        if (fstatSync(fd).size > largestBytes) fd = turnedOver(path, fd);
        writeSync(fd, line);
      } catch {
        // As said above; the line is on stderr as well.
      }
    },
  };
}

// Non-blocking: a pipe that nobody reads must not keep a pod from starting before it is found to be none of ours.
const appending =
  constants.O_WRONLY |
  constants.O_APPEND |
  constants.O_CREAT |
  constants.O_NOFOLLOW |
  constants.O_NONBLOCK |
  constants.O_NOCTTY;

function openOwn(path: string): number {
  const fd = openIfOne(path);
  const problem = problemOf(fstatSync(fd));
  if (problem === undefined) return fd;
  closeSync(fd);
  throw new Error(`${path} ${problem}`);
}

function openIfOne(path: string): number {
  try {
    return openSync(path, appending, 0o600);
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    // The system's own words are about something else.
    if (error.code === "ELOOP") throw new Error(`${path} is a symbolic link`);
    if (error.code === "ENXIO") throw new Error(`${path} is not a regular file`);
    throw error;
  }
}

const writableByOthers = 0o022;

function problemOf(file: Stats): string | undefined {
  if (!file.isFile()) return "is not a regular file";
  const user = process.geteuid?.() ?? 0;
  if (file.uid !== user && file.uid !== 0) return `belongs to user ${file.uid}`;
  if ((file.mode & writableByOthers) !== 0) return "can be written by others";
  // Someone may have given another file of ours this name.
  if (file.nlink > 1) return "has other names too (hard links)";
  return undefined;
}

// The file that has the name from now on; the one that is left is full, and whatever others still add to it stays in it.
function turnedOver(path: string, full: number): number {
  try {
    turnOver(path);
    const fd = openOwn(path);
    closeSync(full);
    return fd;
  } catch {
    // It cannot be turned over, or is none of ours any more: too long a file is better than a lost line.
    return full;
  }
}

/** Who holds the turn longer than this was killed. */
const turnMs = 10_000;

// Of the processes that find the file full, one turns it over: the next would put the new file in the place of the old.
function turnOver(path: string): void {
  const turn = `${path}.turn`;
  const since = statSync(turn, { throwIfNoEntry: false })?.mtimeMs;
  // In either direction: the clock may have been set since.
  if (since !== undefined && Math.abs(Date.now() - since) > turnMs) rmdirSync(turn);
  try {
    mkdirSync(turn);
  } catch {
    // Another process is at it. Lines go on into whichever file has the name.
    return;
  }
  try {
    if (sizeOf(path) > largestBytes) renameSync(path, `${path}.1`);
  } finally {
    rmdirSync(turn);
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
