// Reads stdin and writes stdout whole, also where the runtime made the pipes non-blocking. Edge; used by the entries.
import { closeSync, constants, fstatSync, openSync, readSync, writeSync } from "node:fs";
import { Socket } from "node:net";
import { CniError, errorCode } from "./cni/error.ts";

/** How much is taken from stdin, and how long it may take to come, in milliseconds. */
export type StdinLimits = { readonly mostBytes: number; readonly remainingMs: () => number };

/**
 * All of stdin, as text. What is there is read at once; for what is not yet there, Node's event loop waits.
 * @throws CniError 6 when it holds more, at once, and 11 when it is not closed in time; or the system's error.
 */
export async function readStdin({ mostBytes, remainingMs }: StdinLimits): Promise<string> {
  const { fd, socket } = openStdin();
  const chunks: Buffer[] = [];
  let size = 0;
  const take = (chunk: Buffer) => {
    size += chunk.length;
    if (size > mostBytes) throw tooMuch(mostBytes);
    chunks.push(chunk);
  };
  if (isReadToEnd(fd, take)) {
    socket?.destroy();
    if (fd !== 0) closeSync(fd);
  } else {
    await readRest(socket ?? new Socket({ fd }), take, remainingMs());
  }
  return Buffer.concat(chunks).toString();
}

// A read of what nobody closes would never come back. So a pipe is opened once more, without waiting: the mode of the runtime's
// own descriptor would be changed for all who have it. For a socket, which cannot be opened again, that is what Node's stream
// does first. Other files do not keep us waiting.
function openStdin(): { fd: number; socket?: Socket } {
  const stdin = fstatSync(0);
  if (!stdin.isFIFO() && !stdin.isSocket()) return { fd: 0 };
  try {
    return { fd: openSync("/proc/self/fd/0", constants.O_RDONLY | constants.O_NONBLOCK) };
  } catch {
    // A socket; or a pipe of another user, or no /proc, where a stream is just as good.
    return { fd: 0, socket: new Socket({ fd: 0 }) };
  }
}

// Nearly always all is there when Node has started. A stream from the first byte on would take a millisecond.
function isReadToEnd(fd: number, take: (chunk: Buffer) => void): boolean {
  const buffer = Buffer.allocUnsafe(64 * 1024);
  for (;;) {
    const count = unlessBusy(() => readSync(fd, buffer));
    if (count === undefined) return false;
    if (count === 0) return true;
    take(Buffer.from(buffer.subarray(0, count)));
  }
}

async function readRest(
  socket: Socket,
  take: (chunk: Buffer) => void,
  withinMs: number,
): Promise<void> {
  const timer = setTimeout(() => socket.destroy(tooLate()), Math.max(0, withinMs));
  try {
    for await (const chunk of socket) take(chunk);
  } finally {
    clearTimeout(timer);
  }
}

function tooMuch(mostBytes: number): CniError {
  return new CniError(errorCode.decodingFailure, `stdin holds more than ${mostBytes} bytes`, {
    details: "a conf with its prevResult is some kilobytes long: see what the plugins before print",
  });
}

function tooLate(): CniError {
  return new CniError(errorCode.tryAgainLater, "stdin was not closed in time", {
    details: "the runtime has to write the conf to the plugin's stdin, and to close it",
  });
}

/** Writes all of `text` to a descriptor before it returns. */
export function writeAll(fd: number, text: string): void {
  let rest = Buffer.from(text);
  while (rest.length > 0) {
    const bytes = rest;
    const written = unlessBusy(() => writeSync(fd, bytes));
    // A millisecond, asleep: the memory is nobody else's, so nobody wakes us earlier.
    if (written === undefined) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    else rest = rest.subarray(written);
  }
}

// Undefined for EAGAIN: the other side of a non-blocking pipe is slower than we are. EOF is no error here: Windows only.
function unlessBusy(io: () => number): number | undefined {
  try {
    return io();
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EAGAIN") return undefined;
    throw error;
  }
}
