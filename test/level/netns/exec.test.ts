// One child, run either way: with no time left it is not started, with a little it is ended, and all that it says is bounded.
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type ExecRequest, exec, longestOutputBytes } from "../../../src/netns/exec.ts";
import { execAsync } from "../../../src/netns/exec-async.ts";

const ended = { exitCode: undefined, timedOut: true, startError: "", outputs: ["", "", ""] };
const env = { PATH: "/usr/bin:/bin" };

function scratch(): string {
  const dir = mkdtempSync(join(tmpdir(), "slc-exec-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  return dir;
}

/** A shell's script as a child. */
function shell(script: string, request: Partial<ExecRequest> = {}): ExecRequest {
  return { argv: ["/bin/sh", "-c", script], env, outputs: 2, timeoutMs: 60_000, ...request };
}

describe.each([
  { name: "exec", run: exec, spawn: "spawnSync" },
  { name: "execAsync", run: execAsync, spawn: "spawn" },
])("$name()", ({ run, spawn }) => {
  test.each([0, -0, -5, Number.NaN])("starts nothing when %d ms are left", async (timeoutMs) => {
    const trace = join(scratch(), "trace");
    expect(await run({ argv: ["/bin/touch", trace], env, outputs: 3, timeoutMs })).toEqual(ended);
    expect(existsSync(trace)).toBe(false);
  });

  test("ends a child that takes longer than a part of a millisecond", async () => {
    const argv = ["/bin/sleep", "60"] as const;
    expect(await run({ argv, env: {}, outputs: 3, timeoutMs: 0.4 })).toEqual(ended);
  });

  test("gives back each output and the status", async () => {
    const script = "echo a; echo b >&2; echo c >&3; printf '\\377d' >&4; exit 7";
    expect(await run(shell(script, { outputs: 4 }))).toEqual({
      exitCode: 7,
      timedOut: false,
      startError: "",
      outputs: ["a\n", "b\n", "c\n", "\ufffdd"],
    });
  });

  test("gives the child no other environment, directory or input than it is told", async () => {
    const { outputs } = await run(
      shell("env | grep -v ^_= | sort; pwd; cat", { env: { WORD: "x" } }),
    );
    expect(outputs).toEqual(["PWD=/\nWORD=x\n/\n", ""]);
  });

  test("has no status of a child that a signal ended", async () => {
    const killed = { exitCode: undefined, timedOut: false, startError: "", outputs: ["a\n", ""] };
    expect(await run(shell("echo a; kill -9 $$"))).toEqual(killed);
  });

  test("says why a program cannot be started", async () => {
    const argv = ["/nonexistent"] as const;
    const { exitCode, timedOut, startError } = await run({
      argv,
      env,
      outputs: 2,
      timeoutMs: 9_000,
    });
    expect({ exitCode, timedOut, startError }).toEqual({
      exitCode: undefined,
      timedOut: false,
      startError: `${spawn} /nonexistent ENOENT`,
    });
    const long = await run(shell("true", { argv: ["/bin/echo", "a".repeat(1024 * 1024)] }));
    expect(long.startError).toMatch(new RegExp(`^${spawn}( /bin/echo)? E2BIG$`));
  });

  test("does not wait beyond its time for outputs that a child's child holds open", async () => {
    const beganMs = Date.now();
    const { outputs, timedOut } = await run(shell("echo a; sleep 30 & exit 3", { timeoutMs: 500 }));
    expect({ outputs, timedOut }).toEqual({ outputs: ["a\n", ""], timedOut: true });
    expect(Date.now() - beganMs).toBeLessThan(25_000);
  });

  test("takes as much as there may be", async () => {
    const script = `head -c ${longestOutputBytes - 2} /dev/zero; echo a >&2`;
    const { outputs, ...how } = await run(shell(script));
    expect(how).toEqual({ exitCode: 0, timedOut: false, startError: "" });
    expect(outputs.map(({ length }) => length)).toEqual([longestOutputBytes - 2, 2]);
  });

  test("ends a child that has too much to say, and says so", async () => {
    const script = "echo first; exec 3>&1 >&4; while :; do head -c 1000000 /dev/zero; done";
    const { outputs, ...how } = await run(shell(script, { outputs: 4 }));
    expect(how).toEqual({ exitCode: undefined, timedOut: false, isTooLong: true, startError: "" });
    expect(outputs.map(({ length }) => length)).toEqual([6, 0, 0, longestOutputBytes]);
  });

  test("ends with it all that timeout(1) heads, which has a deadline no more otherwise", async () => {
    const file = join(scratch(), "pid");
    const script = 'echo $$ >"$1"; while :; do head -c 1000000 /dev/zero; done';
    const limited = ["/usr/bin/timeout", "-s", "KILL", "60", "/bin/sh", "-c", script] as const;
    await run(shell("", { argv: [...limited, "sh", file] }));
    const pid = Number(readFileSync(file, "utf8"));
    await vi.waitFor(() => expect(existsSync(`/proc/${pid}`)).toBe(false), { timeout: 10_000 });
  });
});

test("execAsync() lets other work go on, and other children run, while one works", async () => {
  const file = join(scratch(), "word");
  // It waits for what the other does.
  const script = 'while ! [ -e "$0" ]; do sleep 0.01; done; echo met';
  const waiting = execAsync(shell("", { argv: ["/bin/sh", "-c", script, file] }));
  const [one, other] = await Promise.all([waiting, execAsync(shell(`: >${file}`))]);
  expect([one.outputs[0], other.exitCode]).toEqual(["met\n", 0]);
});
