// The lock between processes of different namespaces: the plugin's on the node, and an agent's in a container.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import { expect, vi } from "vitest";
import { takeLock } from "../../../src/attachment/lock.ts";
import { test } from "./level.ts";

// The directory under another path, as in a container; there, the contender is process 1.
const script = `mount --bind "$1" "$2" && exec "$3" "$4" "$2" "$5" "for good"`;
const apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"];

test("a lock holds against processes of other PID, mount and network namespaces", async ({
  attachment: { netns, stateDir },
  onTestFinished,
}) => {
  const [directory, mounted] = [join(stateDir, "locks"), join(stateDir, "mounted")];
  for (const path of [directory, mounted]) mkdirSync(path, { mode: 0o700 });
  const log = join(stateDir, "log");
  const said = () => readFileSync(log, { encoding: "utf8", flag: "a+" });
  const contender = resolve("test/attachment/contender.ts");
  const inside = ["sh", "-c", script, "sh", directory, mounted, process.execPath, contender, log];
  const take = (withinMs: number) => {
    const endMs = Date.now() + withinMs;
    return takeLock(directory, {
      key: "4-1",
      what: "netns /n",
      remainingMs: () => endMs - Date.now(),
    });
  };
  const here = await take(0);
  const there = spawn("nsenter", [`--net=${netns.path}`, "--", ...apart, ...inside], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void there.kill("SIGKILL"));
  await once(there.stdout, "data");
  await setTimeout(300);
  expect(said()).toBe("");
  here.release();
  await vi.waitFor(() => expect(said()).toBe("took 1\n"), 30_000);
  await expect(take(100)).rejects.toMatchObject({ kind: "try-again" });
  there.kill("SIGKILL");
  const again = await take(30_000);
  again.release();
  expect(readdirSync(directory)).toEqual([]);
});
