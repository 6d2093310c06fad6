// The lock of a netns, among real processes.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { sweepLocks, takeLock } from "../../src/attachment/lock.ts";

let work = "";
let children: ChildProcess[] = [];
const directory = () => join(work, "locks");
const log = () => join(work, "log");
const lines = () => readFileSync(log(), { encoding: "utf8", flag: "a+" }).split("\n").slice(0, -1);

beforeEach(() => {
  work = mkdtempSync(join(tmpdir(), "slc-lock-"));
  children = [];
});

afterEach(async () => {
  await Promise.all(children.map(killed));
  rmSync(work, { recursive: true });
});

/** The lock that the contenders want as well. */
const wanted = (withinMs: number) => {
  const endMs = Date.now() + withinMs;
  return { key: "4-1", what: "netns /n", remainingMs: () => endMs - Date.now() };
};

function contend(way: "often" | "for good" | "blocked"): ChildProcess {
  const script = join(import.meta.dirname, "contender.ts");
  const child = spawn(process.execPath, [script, directory(), log(), way], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  children.push(child);
  return child;
}

async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

async function saidBy(count: number): Promise<void> {
  await vi.waitFor(() => expect(lines().length).toBeGreaterThanOrEqual(count), 30_000);
}

const slow = 60_000;

test("of processes that want the same lock, one at a time holds it, also when some are killed", {
  timeout: slow,
}, async () => {
  const [first, second, ...others] = Array.from({ length: 5 }, () => contend("often"));
  for (const [count, child] of [[20, first] as const, [60, second] as const]) {
    await saidBy(count);
    if (child !== undefined) await killed(child);
  }
  await Promise.all(others.map((child) => child.exitCode ?? once(child, "exit")));
  expect(others.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0]);
  // A killed one's last word may be that it took the lock.
  const last = [first, second].map((child) =>
    lines().findLastIndex((line) => line.endsWith(` ${child?.pid}`)),
  );
  const rest = lines().filter((line, i) => !(line.startsWith("took") && last.includes(i)));
  const inTurn = rest.map((line, i) =>
    i % 2 === 0 ? line : rest[i - 1]?.replace("took", "releases"),
  );
  expect(rest).toEqual(inTurn);
  const count = (child: ChildProcess) => rest.filter((line) => line === `took ${child.pid}`).length;
  expect(others.map(count)).toEqual([40, 40, 40]);
});

test("a holder that is killed does not keep the next one waiting", { timeout: slow }, async () => {
  const holder = contend("for good");
  await saidBy(1);
  expect(readdirSync(directory())).toHaveLength(1);
  const next = takeLock(directory(), wanted(30_000));
  await killed(holder);
  const killedMs = Date.now();
  const lock = await next;
  expect(Date.now() - killedMs).toBeLessThan(2_000);
  expect(readdirSync(directory())).toHaveLength(1);
  lock.release();
  expect(readdirSync(directory())).toEqual([]);
});

test("a holder whose event loop stands still for long keeps its lock", {
  timeout: slow,
}, async () => {
  contend("blocked");
  await saidBy(1);
  const lock = await takeLock(directory(), wanted(30_000));
  expect(lines().map((line) => line.split(" ")[0])).toEqual(["took", "releases"]);
  lock.release();
});

test("a lock that is held until no time is left is an error that says so", {
  timeout: slow,
}, async () => {
  contend("for good");
  await saidBy(1);
  const [holder] = readdirSync(directory());
  const said = `\\(${holder}: its process lives\\); try again\\. If it stays so, `;
  await expect(takeLock(directory(), wanted(300))).rejects.toMatchObject({
    kind: "try-again",
    message: "netns /n is being worked on by another process",
    details: expect.stringMatching(`^waited \\d+\\.\\d s for its lock ${said}`),
  });
  expect(readdirSync(directory())).toEqual([holder]);
});

test("one process holds several locks, and waits for itself like for others", async () => {
  const first = await takeLock(directory(), wanted(0));
  const other = await takeLock(directory(), { ...wanted(0), key: "4-11" });
  const order: string[] = [];
  const next = takeLock(directory(), wanted(4_000)).then((lock) => {
    order.push("took");
    return lock;
  });
  await setTimeout(50);
  order.push("releases");
  first.release();
  first.release();
  for (const lock of [await next, other]) lock.release();
  expect(order).toEqual(["releases", "took"]);
  expect(readdirSync(directory())).toEqual([]);
});

test("what only looks like a lock is none", async () => {
  mkdirSync(directory(), { mode: 0o700 });
  const server = createServer().listen(join(work, "socket"));
  onTestFinished(() => void server.close());
  symlinkSync(join(work, "socket"), join(directory(), "4-1,00000000-link"));
  symlinkSync("nowhere", join(directory(), "4-1,00000000-dangling"));
  mkdirSync(join(directory(), "4-1,00000000-directory"));
  writeFileSync(join(directory(), "4-1,00000000-file"), "{");
  writeFileSync(join(directory(), "4-1"), "");
  const lock = await takeLock(directory(), wanted(0));
  lock.release();
  expect(readdirSync(directory())).toHaveLength(5);
});

test.each<readonly [string, (path: string) => void, object]>([
  [
    "a link",
    (path) => symlinkSync(tmpdir(), path),
    { message: expect.stringMatching(/ is not taken for ours: it is a symbolic link$/) },
  ],
  [
    "open to others",
    (path) => {
      mkdirSync(path);
      chmodSync(path, 0o770);
    },
    { message: expect.stringMatching(/ is not taken for ours: others than its owner may write /) },
  ],
  [
    "a file",
    (path) => writeFileSync(path, ""),
    {
      message: expect.stringMatching(/^netns \/n cannot be locked in /),
      details: expect.stringMatching(/^EEXIST: .*; see that there is room/),
    },
  ],
])("a lock directory that is %s is an error", async (_, make, error) => {
  make(directory());
  await expect(takeLock(directory(), wanted(60_000))).rejects.toMatchObject(error);
});

test("the directory's path may be as long as the system allows", async () => {
  const deep = `${work}/${"d".repeat(199)}`.concat(`/${"d".repeat(199)}`.repeat(19));
  const longest = `${deep}/${"d".repeat(4_094 - deep.length)}`;
  const first = await takeLock(longest, wanted(0));
  await expect(takeLock(longest, wanted(50))).rejects.toMatchObject({ kind: "try-again" });
  first.release();
  const again = await takeLock(longest, wanted(0));
  again.release();
});

test("sweepLocks() takes away locks of an hour ago and of before the boot, and nothing else", async () => {
  const lock = await takeLock(directory(), wanted(0));
  const held = readdirSync(directory());
  const nowMs = Number(process.hrtime.bigint() / 1_000_000n);
  const name = (agoMs: number) => `4-1,${(nowMs - agoMs).toString(36).padStart(8, "0")}-0a`;
  const [young, old, future] = [name(3_500_000), name(3_700_000), name(-3_700_000)];
  const all = [young, old, future, `.${young}.tmp`, `.${old}.tmp`, "README", "4-1,0", "4-1,-0"];
  for (const each of all) writeFileSync(join(directory(), each), "");
  mkdirSync(join(directory(), "4-1,0-0"));
  sweepLocks(directory());
  const kept = [...held, young, `.${young}.tmp`, "README", "4-1,0", "4-1,-0", "4-1,0-0"];
  expect(readdirSync(directory()).toSorted()).toEqual(kept.toSorted());
  lock.release();
});
