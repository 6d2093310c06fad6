// The CNI plugin's executable: environment and stdin in, one JSON document on stdout and an exit status out.
// Run by Node as a bundle, or started from a snapshot in which all of this has been loaded and run once (warm.ts).
import { Writable } from "node:stream";
import { setTimeout } from "node:timers/promises";
import { startupSnapshot } from "node:v8";
import { openStore } from "./attachment/store.ts";
import { monotonicMs } from "./clock.ts";
import { renderError } from "./cni/error.ts";
import { currentVersion } from "./cni/version.ts";
import { toCniError } from "./command/failure.ts";
import { type Output, run } from "./command/run.ts";
import type { Deps } from "./deps.ts";
import { openLog, redact } from "./log.ts";
import { exec } from "./netns/exec.ts";
import { nssMasker } from "./netns/host.ts";
import { closeNetns, openNetns } from "./netns/path.ts";
import { lacksCapability } from "./netns/rights.ts";
import { nodeToolbox } from "./netns/toolbox.ts";
import { openMemory } from "./node/memory.ts";
import { readStdin, writeAll } from "./stdio.ts";
import { warmUp } from "./warm.ts";

async function main(): Promise<void> {
  keepNodeQuiet();
  process.on("uncaughtException", (thrown) => answer(unforeseen(thrown)));
  answer(await run({ env: process.env, readStdin }, makeDeps()));
}

// Node must neither say nor end anything by itself: stdout is the answer's, and a warning is no failure. What it warns of is
// for authors of programs, so nobody is told. Its streams lead nowhere: to make them when they are first looked at,
// as execa does for each pipe beyond the third, costs a millisecond, and what Node writes to them is no log line.
function keepNodeQuiet(): void {
  for (const name of ["stdout", "stderr"]) Object.defineProperty(process, name, { value: nowhere });
  Object.defineProperty(process, "stdin", { value: undefined });
  process.removeAllListeners("warning");
  // Under options for debugging, a deprecation would be thrown.
  process.noDeprecation = true;
}

const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });

// The end of the call, at once: all is written then, and there is nothing to wait for that a runtime should wait for.
function answer({ exitCode, stdout, stderr }: Output): never {
  try {
    if (stderr !== "") writeAll(2, stderr);
    writeAll(1, stdout);
  } catch (thrown) {
    // Full, or closed by the runtime: there is no other place for an answer, and an ADD that was not heard has failed.
    const log = openLog({ level: "info", file: "" });
    log.error({ err: thrown }, "the answer could not be written");
    end(1);
  }
  end(exitCode);
}

// Node's own end waits for a look-up of a name until the system's resolver gives up, 10 s and more past the deadline. Another
// program in this one's place, which only ends, does not.
function end(exitCode: number): never {
  if (process.getActiveResourcesInfo().includes("GetAddrInfoReqWrap")) {
    process.execve?.("/bin/sh", ["sh", "-c", `exit ${exitCode}`], {});
  }
  process.exit(exitCode);
}

// What no command foresees is caught in command/run.ts; this was thrown outside of any, by a socket's event for example.
function unforeseen(thrown: Error): Output {
  openLog({ level: "info", file: "" }).error({ err: thrown }, "an error outside of the command");
  const stdout = redact(renderError(toCniError(thrown, "this call"), currentVersion));
  return { exitCode: 1, stdout, stderr: "" };
}

// At run time, also from a snapshot: nothing of the machine that built it may be in here.
function makeDeps(): Deps {
  const clock = {
    monotonicMs,
    epochMs: () => Date.now(),
    sleep: async (ms: number) => await setTimeout(ms),
  };
  // Loaded when the API is asked, and not before: most ADDs need nothing of it.
  const openKube: Deps["openKube"] = async (settings) => {
    // For the look-up of a server's name: Node would start four threads, and abort where one of them is refused.
    process.env["UV_THREADPOOL_SIZE"] = "1";
    const { openReader } = await import("./kube/reader.ts");
    return openReader(settings);
  };
  return {
    openKube,
    exec,
    clock,
    toolbox: nodeToolbox(process.env["PATH"]),
    nssMask: nssMasker(),
    lacks: lacksCapability,
    openNetns,
    closeNetns,
    openStore,
    openMemory,
    openLog,
  };
}

if (startupSnapshot.isBuildingSnapshot()) {
  startupSnapshot.setDeserializeMainFunction(() => void main());
  void warmUp(makeDeps);
} else {
  void main();
}
