// Reads stdin and writes stdout whole, also where the runtime made the pipes non-blocking. Edge; used by the entries.
import { readSync, writeSync } from "node:fs";

/** All of stdin, as text. */
export function readStdin(): string {
  const chunks: Buffer[] = [];
  const buffer = Buffer.allocUnsafe(64 * 1024);
  for (;;) {
    const size = patiently(() => readSync(0, buffer));
    if (size === 0) return Buffer.concat(chunks).toString();
    chunks.push(Buffer.from(buffer.subarray(0, size)));
  }
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
function patiently(io: () => number): number {
  for (;;) {
    try {
      return io();
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EAGAIN")) throw error;
      // A millisecond, asleep: the memory is nobody else's, so nobody wakes us earlier.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}
