// Makes dist/sluice: one file that needs no Node on the machine it runs on. It is the pinned Node itself with a startup
// snapshot in it, in which the program has been loaded and run once (src/warm.ts).
import { existsSync } from "node:fs";
import { chmod, copyFile, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { execa } from "execa";
import { bundleForSnapshot } from "./bundle.ts";
import { withoutCodeCache } from "./sea-blob.ts";

/** Where the executable goes, relative to the project. */
export const executableFile = "dist/sluice";

/** For the positions in its stack traces. */
const mapFile = `${executableFile}.map`;

/** Node looks for this mark in itself to know that an application was put in (its documentation names it). */
const fuse = "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2";

const pinnedNode = resolve(`node_modules/node-linux-${process.arch}/bin/node`);

/**
 * V8's options, the same when the snapshot is made and when it is used.
 * - The snapshot's hash tables are used as they are: making them anew takes 4 ms of each start. The seed of hashes is then
 *   the same in every process, which is fine for one that ends after one bounded input.
 * - Nothing here runs so often that compiling it to machine code pays: without, an ADD takes 5 ms less.
 */
const v8Options = ["--no-rehash-snapshot", "--jitless"];

/** Makes the executable, for the kind of machine that this runs on: a snapshot is made by running. */
export async function makeExecutable(): Promise<void> {
  if (!existsSync(pinnedNode)) {
    throw new Error(
      `no ${pinnedNode}: npm install brings it on linux-x64 and linux-arm64, for that CPU`,
    );
  }
  // Beside the result, which so appears whole and at once.
  const work = await mkdtemp(join(dirname(executableFile), ".build-"));
  try {
    await makeBlob(work);
    const executable = join(work, "sluice");
    await copyFile(pinnedNode, executable);
    // Before the blob goes in: stripping afterwards breaks the file. A third of its size are symbols.
    await execa("strip", [executable]);
    await execa(
      "postject",
      [executable, "NODE_SEA_BLOB", join(work, "blob"), "--sentinel-fuse", fuse],
      { preferLocal: true },
    );
    await chmod(executable, 0o755);
    await rename(executable, executableFile);
    await rename(join(work, "main.cjs.map"), mapFile);
  } finally {
    await rm(work, { recursive: true });
  }
}

async function makeBlob(work: string): Promise<void> {
  await bundleForSnapshot(join(work, "main.cjs"), forgetBuilder);
  const config = {
    // The path is in the snapshot and in stack traces: this one is the same wherever the work directory is.
    main: "/proc/self/cwd/main.cjs",
    output: "blob",
    useSnapshot: true,
    disableExperimentalSEAWarning: true,
    execArgv: v8Options,
    // Options in an inherited NODE_OPTIONS are for other programs, and an unknown one would keep us from starting.
    execArgvExtension: "none",
  };
  await writeFile(join(work, "sea.json"), JSON.stringify(config));
  // A clean environment: what is in the snapshot must not depend on who builds it.
  const made = await execa(
    pinnedNode,
    [...v8Options, "--no-warnings", "--experimental-sea-config", "sea.json"],
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
  if (made.exitCode !== 0) throw new Error(`the startup snapshot was not made:\n${made.all}`);
  await writeFile(join(work, "blob"), withoutCodeCache(await readFile(join(work, "blob"))));
}

// What would be kept of the building machine: its name, which pino asks for when it is loaded, and where its Node is.
const forgetBuilder = `"use strict";
require("node:os").hostname = () => "";
process.execPath = process.argv[0] = "node";`;
