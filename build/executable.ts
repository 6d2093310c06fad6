// Makes dist/sluice of the bundle: one file that needs no Node on the machine it runs on. It is the pinned Node itself with
// a startup snapshot in it, in which the bundle has been loaded and run once (src/warm.ts): half the time of a bundle.
import { chmod, copyFile, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { execa } from "execa";
import { bundleFile } from "./bundle.ts";

/** Where the executable goes, relative to the project. */
export const executableFile = "dist/sluice";

/** Node looks for this mark in itself to know that an application was put in (its documentation names it). */
const fuse = "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2";

const pinnedNode = resolve(`node_modules/node-linux-${process.arch}/bin/node`);

/** Makes the executable, for the kind of machine that this runs on: a snapshot is made by running. */
export async function makeExecutable(): Promise<void> {
  const work = await mkdtemp(join(tmpdir(), "sluice-build-"));
  try {
    const blob = await makeBlob(work);
    const executable = join(work, "sluice");
    await copyFile(pinnedNode, executable);
    // Before the blob goes in: stripping afterwards breaks the file. A third of its size are symbols.
    await execa("strip", [executable]);
    await execa("postject", [executable, "NODE_SEA_BLOB", blob, "--sentinel-fuse", fuse], {
      preferLocal: true,
    });
    await chmod(executable, 0o755);
    await copyFile(executable, `${executableFile}.new`);
    await rename(`${executableFile}.new`, executableFile);
  } finally {
    await rm(work, { recursive: true });
  }
}

async function makeBlob(work: string): Promise<string> {
  const main = join(work, "main.cjs");
  const blob = join(work, "sluice.blob");
  await writeFile(main, withoutShebang(await readFile(bundleFile, "utf8")));
  const config = {
    main,
    output: blob,
    useSnapshot: true,
    disableExperimentalSEAWarning: true,
    // Options in an inherited NODE_OPTIONS are for other programs, and an unknown one would keep us from starting.
    execArgvExtension: "none",
  };
  await writeFile(join(work, "sea.json"), JSON.stringify(config));
  // A clean environment: what is in the snapshot must not depend on who builds it. --no-rehash-snapshot saves 3 ms a
  // start; the seed of hashes is then the same in every process, which is fine for one that ends after one bounded input.
  const made = await execa(
    pinnedNode,
    ["--no-rehash-snapshot", "--no-warnings", "--experimental-sea-config", join(work, "sea.json")],
    { cwd: work, env: { PATH: "/usr/bin:/bin" }, extendEnv: false, reject: false, all: true },
  );
  if (made.exitCode !== 0) throw new Error(`the startup snapshot was not made:\n${made.all}`);
  return blob;
}

function withoutShebang(text: string): string {
  return text.replace(/^#!.*\n/, "");
}
