// The CNI plugin's executable: environment and stdin in, one JSON document on stdout and an exit status out.
// Run by Node as a bundle, or started from a snapshot in which all of this has been loaded and run once (warm.ts).
import { setTimeout } from "node:timers/promises";
import { startupSnapshot } from "node:v8";
import { openStore } from "./attachment/store.ts";
import { monotonicMs } from "./clock.ts";
import { run } from "./command/run.ts";
import type { Deps } from "./deps.ts";
import { openLog } from "./log.ts";
import { exec } from "./netns/exec.ts";
import { nssMasker, programFinder, searchPath } from "./netns/host.ts";
import { closeNetns, openNetns } from "./netns/path.ts";
import { readStdin, writeAll } from "./stdio.ts";
import { warmUp } from "./warm.ts";

async function main(): Promise<void> {
  hideStreams();
  const { exitCode, stdout, stderr } = await run({ env: process.env, readStdin }, makeDeps());
  if (stderr !== "") writeAll(2, stderr);
  writeAll(1, stdout);
  // All is written; there is nothing to wait for that a runtime should wait for.
  process.exit(exitCode);
}

// Node makes process.stdin and its like when they are first looked at, and execa looks at them for each pipe beyond the
// third: a millisecond for what nobody uses.
function hideStreams(): void {
  for (const name of ["stdin", "stdout", "stderr"]) {
    Object.defineProperty(process, name, { value: undefined });
  }
}

// At run time, also from a snapshot: nothing of the machine that built it may be in here.
function makeDeps(): Deps {
  const path = searchPath(process.env["PATH"]);
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
    find: programFinder(path),
    path,
    nssMask: nssMasker(),
    openNetns,
    closeNetns,
    openStore,
    openLog,
  };
}

if (startupSnapshot.isBuildingSnapshot()) {
  startupSnapshot.setDeserializeMainFunction(() => void main());
  void warmUp(makeDeps);
} else {
  void main();
}
