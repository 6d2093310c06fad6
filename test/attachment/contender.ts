// A process that takes a lock, for the tests: `node contender.ts <directory> <log> <way>`. Each line that it writes to the log
// says what it is about to do with the lock, and its PID, as it sees it. Its stdout says when it begins.
import { appendFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { takeLock } from "../../src/attachment/lock.ts";

const [directory = "", log = "", way = ""] = process.argv.slice(2);
const say = (word: string) => appendFileSync(log, `${word} ${process.pid}\n`);
const endMs = Date.now() + 60_000;
const wanted = { key: "4-1", what: "netns /n", remainingMs: () => endMs - Date.now() };

/** How many times it takes the lock, and what it does while it holds it. */
const ways: Readonly<Record<string, readonly [number, () => Promise<unknown>]>> = {
  often: [40, () => setTimeout(1)],
  "for good": [1, () => setTimeout(60_000)],
  // As the plugin does while its child works: the event loop stands still.
  blocked: [
    1,
    () => Promise.resolve(Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3_000)),
  ],
};
process.stdout.write("wants");
const [times, hold] = ways[way] ?? [0, () => Promise.resolve()];
for (let i = 0; i < times; i += 1) {
  const lock = await takeLock(directory, wanted);
  say("took");
  await hold();
  say("releases");
  lock.release();
}
