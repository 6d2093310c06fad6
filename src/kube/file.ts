// Reads the kubeconfig and the files that it names: other programs write them, so they may be absent or half for a moment, or
// be what no such file is. Edge.
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

/** No kubeconfig, certificate or token that anybody means is larger. */
export const largestFileBytes = 1024 * 1024;

/** A file cannot be read; the message says why, in the system's words or ours. */
export class UnreadableError extends Error {
  /** It may be there in a moment. */
  readonly isPassing: boolean;

  constructor(problem: string, more: { isPassing?: boolean; cause?: unknown } = {}) {
    super(problem, { cause: more.cause });
    this.name = "UnreadableError";
    this.isPassing = more.isPassing ?? false;
  }
}

/** A regular file's text. Links are followed: kubelets swap tokens by one. @throws UnreadableError */
export function readSmallFile(path: string): string {
  try {
    // Non-blocking: opening a pipe that nobody writes to would wait for ever.
    const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      return readWhole(path, fd);
    } finally {
      closeSync(fd);
    }
  } catch (cause) {
    if (cause instanceof UnreadableError) throw cause;
    const problem = cause instanceof Error ? cause.message : String(cause);
    throw new UnreadableError(problem, { isPassing: isMomentary(cause), cause });
  }
}

// A directory is left to the system, which says so when it is read.
function readWhole(path: string, fd: number): string {
  const stats = fstatSync(fd);
  if (!stats.isFile() && !stats.isDirectory()) {
    throw new UnreadableError(`${path} is no regular file`);
  }
  const bytes = Buffer.alloc(largestFileBytes + 1);
  let size = 0;
  for (let more = -1; more !== 0 && size < bytes.length; size += more) {
    more = readSync(fd, bytes, size, bytes.length - size, null);
  }
  if (size <= largestFileBytes) return bytes.toString("utf8", 0, size);
  throw new UnreadableError(`${path} is larger than ${largestFileBytes} bytes`);
}

const momentary = ["ENOENT", "ENOTDIR", "EMFILE", "ENFILE", "ENOMEM", "EAGAIN", "EINTR", "ESTALE"];

function isMomentary(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && momentary.includes(String(cause.code));
}
