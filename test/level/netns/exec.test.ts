// One child: with no time left it is not started, and with a little it is ended.
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { exec, longestOutputBytes } from "../../../src/netns/exec.ts";

const ended = { exitCode: undefined, timedOut: true, startError: "", outputs: ["", "", ""] };

test.each([0, -0, -5, Number.NaN])(
  "exec() starts nothing when %d ms are left",
  async (timeoutMs) => {
    const dir = mkdtempSync(join(tmpdir(), "slc-exec-"));
    onTestFinished(() => rmSync(dir, { recursive: true }));
    const argv = ["/bin/touch", join(dir, "trace")] as const;
    expect(await exec({ argv, env: {}, outputs: 3, timeoutMs })).toEqual(ended);
    expect(existsSync(join(dir, "trace"))).toBe(false);
  },
);

test("exec() ends a child that takes longer than a part of a millisecond", async () => {
  const argv = ["/bin/sleep", "60"] as const;
  expect(await exec({ argv, env: {}, outputs: 3, timeoutMs: 0.4 })).toEqual(ended);
});

test("exec() says why a program cannot be started", async () => {
  const argv = ["/nonexistent"] as const;
  const { exitCode, timedOut, startError } = await exec({
    argv,
    env: {},
    outputs: 2,
    timeoutMs: 9_000,
  });
  expect({ exitCode, timedOut, startError }).toEqual({
    exitCode: undefined,
    timedOut: false,
    startError: "spawnSync /nonexistent ENOENT",
  });
});

test("exec() ends a child that has too much to say, and says so", async () => {
  const script = "echo first; exec 3>&1 >&4; while :; do head -c 1000000 /dev/zero; done";
  const argv = ["/bin/sh", "-c", script] as const;
  const { outputs, ...how } = await exec({ argv, env: {}, outputs: 4, timeoutMs: 60_000 });
  expect(how).toEqual({ exitCode: undefined, timedOut: false, isTooLong: true, startError: "" });
  expect(outputs.map(({ length }) => length)).toEqual([6, 0, 0, longestOutputBytes]);
});

test("exec() ends with it all that timeout(1) heads, which has a deadline no more otherwise", async () => {
  const dir = mkdtempSync(join(tmpdir(), "slc-exec-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const script = 'echo $$ >"$1"; while :; do head -c 1000000 /dev/zero; done';
  const limited = ["/usr/bin/timeout", "-s", "KILL", "60", "/bin/sh", "-c", script] as const;
  const argv = [...limited, "sh", join(dir, "pid")] as const;
  await exec({ argv, env: { PATH: "/usr/bin:/bin" }, outputs: 2, timeoutMs: 60_000 });
  const pid = Number(readFileSync(join(dir, "pid"), "utf8"));
  await vi.waitFor(() => expect(existsSync(`/proc/${pid}`)).toBe(false), { timeout: 10_000 });
});
