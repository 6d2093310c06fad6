// Reads stdin and writes stdout whole, also where the runtime made the pipes non-blocking. Edge; used by the entries.
import { closeSync, constants, fstatSync, openSync, readSync, writeSync } from "node:fs";
import { Socket } from "node:net";
import { CniError, errorCode } from "./cni/error.ts";

/** How much is taken from stdin, and how long it may take to come, in milliseconds. */
export type StdinLimits = { readonly mostBytes: number; readonly remainingMs: () => number };

/**
 * All of stdin, as text.
 * @throws CniError 6 when it holds more, at once, and 11 when it is not closed in time; or the system's error.
 */
export function readStdin(limits: StdinLimits): string {
  const fd = openStdin();
  try {
    return readWhole(fd, limits);
  } finally {
    if (fd !== 0) closeSync(fd);
  }
}

// A read of what nobody closes would never come back. So a pipe is opened once more, without waiting: the mode of the runtime's
// own descriptor would be changed for all who have it. For a socket, which cannot be opened again, that is done: Node's stream
// takes the waiting away from the descriptor, and is good for nothing more. Other files do not keep us waiting.
function openStdin(): number {
  const stdin = fstatSync(0);
  if (!stdin.isFIFO() && !stdin.isSocket()) return 0;
  try {
    return openSync("/proc/self/fd/0", constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    // A socket; or a pipe of another user, or no /proc, where it is just as good.
    new Socket({ fd: 0, readable: false });
    return 0;
  }
}

function readWhole(fd: number, { mostBytes, remainingMs }: StdinLimits): string {
  const buffer = Buffer.allocUnsafe(64 * 1024);
  const chunks: Buffer[] = [];
  for (let size = 0; size <= mostBytes; ) {
    const count = patiently(() => readSync(fd, buffer), remainingMs);
    if (count === 0) return Buffer.concat(chunks).toString();
    chunks.push(Buffer.from(buffer.subarray(0, count)));
    size += count;
  }
  throw new CniError(errorCode.decodingFailure, `stdin holds more than ${mostBytes} bytes`, {
    details: "a conf with its prevResult is some kilobytes long: see what the plugins before print",
  });
}

/** Writes all of `text` to a descriptor before it returns. */
export function writeAll(fd: number, text: string): void {
  let rest = Buffer.from(text);
  while (rest.length > 0) {
    const bytes = rest;
    rest = rest.subarray(patiently(() => writeSync(fd, bytes)));
  }
}

// EAGAIN: the other side of a non-blocking pipe is slower than we are. EOF is no error here: Windows only.
function patiently(io: () => number, remainingMs: () => number = forEver): number {
  for (;;) {
    if (remainingMs() <= 0) throw tooLate();
    try {
      return io();
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EAGAIN")) throw error;
      // A millisecond, asleep: the memory is nobody else's, so nobody wakes us earlier.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

const forEver = () => Number.POSITIVE_INFINITY;

function tooLate(): CniError {
  return new CniError(errorCode.tryAgainLater, "stdin was not closed in time", {
    details: "the runtime has to write the conf to the plugin's stdin, and to close it",
  });
}
