// Runs one child as exec.ts does, without standing still meanwhile: for a process that has more to do than to wait. Not for the
// plugin, which would start more slowly for it, and whose bundle leaves this side of the library out (build/left-out.ts).
import type { Readable, Writable } from "node:stream";
import { execa } from "execa";
import { type Exec, hasTime, longestOutputBytes, resultOf, settingsOf, unstarted } from "./exec.ts";

/** Runs the child to its end. Never rejects: how it ended is in the result. */
export const execAsync: Exec = async (request) => {
  if (!hasTime(request)) return unstarted(request);
  const [file, ...args] = request.argv;
  const child = execa(file, args, {
    ...settingsOf(request),
    // Read below: the library would also put all that was said into a message, escaped, which takes it seconds.
    buffer: false,
    // No SIGKILL after the SIGTERM, and no signal when this process ends: timeout(1) sees to what it heads.
    forceKillAfterDelay: false,
    cleanup: false,
  });
  const streams = child.stdio.slice(1);
  let cut: "late" | "long" | undefined;
  const end = (why: "late" | "long") => {
    cut ??= why;
    child.kill();
    // What the child itself has started may hold them open for long.
    for (const stream of streams) stream?.destroy();
  };
  const chunks = collect(streams, () => end("long"));
  const timer = setTimeout(() => end("late"), request.timeoutMs);
  const { exitCode, originalMessage } = await child;
  clearTimeout(timer);
  return resultOf(request, {
    exitCode,
    originalMessage,
    timedOut: cut === "late",
    isMaxBuffer: cut === "long",
    stdio: [
      undefined,
      ...chunks.map((some) => Buffer.concat(some).subarray(0, longestOutputBytes)),
    ],
  });
};

// What comes from each of the streams, as it comes, until all together is too long.
function collect(
  streams: readonly (Readable | Writable | null)[],
  tooLong: () => void,
): Buffer[][] {
  let bytes = 0;
  return streams.map((stream) => {
    const chunks: Buffer[] = [];
    stream?.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > longestOutputBytes) tooLong();
    });
    return chunks;
  });
}
