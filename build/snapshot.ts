// Makes the startup snapshot that dist/sluice starts from: the program, loaded and run once (src/warm.ts), as the blob that is
// put into the executable.
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { execa } from "execa";
import * as z from "zod";
import { otherSide } from "../src/warm.ts";
import { partFromExecutable } from "./api-part.ts";
import { bundleForSnapshot } from "./bundle.ts";
import { flagHashAt, withCodeCacheOf } from "./sea-blob.ts";

/** The Node that the executable is made of. */
export const pinnedNode = resolve(`node_modules/node-linux-${process.arch}/bin/node`);

/**
 * V8's options, the same when the snapshot is made and when it is used.
 * - The snapshot's hash tables are used as they are: making them anew takes 4 ms of each start. The seed of hashes is then
 *   the same in every process, which is fine for one that ends after one bounded input.
 * - Nothing here runs so often that compiling it to machine code pays: without, an ADD takes 5 ms less.
 * - Code that was compiled when the snapshot was made stays in it.
 * - Room for the young objects of an ADD that asks the API, which else are sorted out once, in MB.
 */
const v8Options = [
  "--no-rehash-snapshot",
  "--jitless",
  "--no-flush-bytecode",
  "--min-semi-space-size=4",
];

/**
 * Node's options when the snapshot is used.
 * - Node would read its 150 root certificates whenever TLS is loaded, on a second CPU for 5 ms; the API server's own comes
 *   with the kubeconfig.
 * - A start takes two threads besides its own, not six: Node waits for ever for one that a process limit keeps from it, and
 *   nothing here is done in the background. Nor does anybody debug a plugin by SIGUSR1, which takes a thread as well.
 */
const nodeOptions = ["--use-openssl-ca", "--v8-pool-size=1", "--disable-sigusr1"];

/** The blob of a single executable, and those of Node's own modules whose code is kept in it. */
export type Made = { readonly blob: Buffer; readonly modules: readonly string[] };

/**
 * Bundles the program in `work`, and makes the blob of a single executable with a snapshot of it and with empty assets of these
 * names. The map is left in `work`.
 */
export async function makeBlob(work: string, assetNames: readonly string[]): Promise<Made> {
  const plugins = [partFromExecutable];
  await bundleForSnapshot(join(work, "main.cjs"), { banner: builderOnly, plugins });
  await writeFile(join(work, "empty"), "");
  const config = {
    // The path is in the snapshot and in stack traces: this one is the same wherever the work directory is.
    main: "/proc/self/cwd/main.cjs",
    output: "blob",
    useSnapshot: true,
    assets: Object.fromEntries(assetNames.map((name) => [name, "empty"])),
    disableExperimentalSEAWarning: true,
    execArgv: [...v8Options, ...nodeOptions],
    // Options in an inherited NODE_OPTIONS are for other programs, and an unknown one would keep us from starting.
    execArgvExtension: "none",
  };
  await writeFile(join(work, "sea.json"), JSON.stringify(config));
  const server = createServer((socket) => socket.on("data", () => socket.end("word")));
  await once(server.listen(join(work, otherSide)), "listening");
  // A clean environment: what is in the snapshot must not depend on who builds it.
  const made = await execa(
    pinnedNode,
    [...v8Options, "--no-warnings", "--expose-internals", "--experimental-sea-config", "sea.json"],
    {
      cwd: work,
      argv0: "node",
      env: { PATH: "/usr/bin:/bin" },
      extendEnv: false,
      stdin: "ignore",
      reject: false,
      all: true,
    },
  );
  server.close();
  if (made.exitCode !== 0) throw new Error(`the startup snapshot was not made:\n${made.all}`);
  const blob = await readFile(join(work, "blob"));
  const inSnapshot = namesSchema.parse(JSON.parse(await readFile(join(work, loadedFile), "utf8")));
  const { loaded, flagHash } = await askNode();
  // vm loads the client itself; a Node that is asked by script has it.
  const modules = [...loaded, "vm"].filter((name) => !inSnapshot.includes(name));
  return { blob: withCodeCacheOf(blob, modules, flagHash), modules };
}

/** In which the builder says which of Node's own modules are in the snapshot. */
const loadedFile = "loaded.json";
const namesSchema = z.array(z.string());

// Node's own modules that asking the API takes: TLS cannot be in a snapshot, so their code is kept beside it, since
// compiling it takes longer than the question itself. And by which hash V8 knows the flags that each start has.
async function askNode(): Promise<{ loaded: string[]; flagHash: number }> {
  const script = `const before = process.moduleLoadList.slice();
    for (const name of ["https", "sea"]) require("node:" + name);
    const loaded = process.moduleLoadList.filter((entry) => !before.includes(entry));
    const cached = new (require("node:vm").Script)("").createCachedData();
    JSON.stringify({ loaded: ${namesOf("loaded")}, flagHash: cached.readUInt32LE(${flagHashAt}) })`;
  const { stdout } = await execa(pinnedNode, [...v8Options, "-p", script], { extendEnv: false });
  return z.object({ loaded: namesSchema, flagHash: z.number() }).parse(JSON.parse(stdout));
}

// Script text: the names in a list of what Node loaded, which has its bindings too.
function namesOf(list: string): string {
  return `${list}.flatMap((entry) => /^NativeModule (.+)$/.exec(entry)?.[1] ?? [])`;
}

// Comes before the program, when the snapshot is made.
const builderOnly = `"use strict";
const v8 = require("node:v8");
// What would be kept of the building machine: where its Node is, and its name, which pino asks for when it is loaded.
const forgetBuilder = () => {
  process.execPath = process.argv[0] = "/node";
  require("node:module")._initPaths();
};
forgetBuilder();
require("node:os").hostname = () => "";
v8.startupSnapshot.addSerializeCallback(() => {
  // Node's own first steps of each start, which the program has thrown away with all other code (src/warm.ts): run again
  // as the last thing, so that each start finds them compiled, which saves it 1 ms.
  const start = require("internal/process/pre_execution");
  start.prepareMainThreadExecution(false, true);
  start.markBootstrapComplete();
  process.once("warning", () => undefined).removeAllListeners("warning");
  forgetBuilder();
  const loaded = ${namesOf("process.moduleLoadList")};
  require("node:fs").writeFileSync("${loadedFile}", JSON.stringify(loaded));
  // For the code cache, which is made after this: functions are compiled with their modules, not at their first call.
  v8.setFlagsFromString("--no-lazy");
});`;
