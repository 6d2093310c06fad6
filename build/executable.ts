// Makes dist/sluice: one file that needs no Node on the machine it runs on. It is the pinned Node itself with a startup
// snapshot of the program in it, and with the API client beside that.
import { existsSync } from "node:fs";
import { chmod, copyFile, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { execa } from "execa";
import { bundlePart, compilePart } from "./api-part.ts";
import { filterEnvironment } from "./entry.ts";
import { partName } from "./part-loader.ts";
import { proveAnswers, proveCode, withTelling } from "./proof.ts";
import { withAssets } from "./sea-blob.ts";
import { makeBlob, pinnedNode } from "./snapshot.ts";

/** Where the executable goes, relative to the project. */
export const executableFile = "dist/sluice";

/** For the positions in its stack traces: file in which they are, and where its map goes. */
const maps = { "main.cjs": `${executableFile}.map`, [`${partName}.cjs`]: `dist/${partName}.map` };

/** Node looks for this mark in itself to know that an application was put in (its documentation names it). */
const fuse = "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2";

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
    const executable = await assemble(work);
    await rename(executable, executableFile);
    for (const [file, map] of Object.entries(maps)) await rename(join(work, `${file}.map`), map);
  } finally {
    await rm(work, { recursive: true });
  }
}

async function assemble(work: string): Promise<string> {
  // A Node without its symbols, a third of its size. They go before the blob comes: stripping afterwards breaks the file.
  await copyFile(pinnedNode, join(work, bareNode));
  await execa("strip", [join(work, bareNode)]);
  const [text, code] = [`${partName}.cjs`, `${partName}.cache`];
  const { blob, modules } = await makeBlob(work, [text, code]);
  const { part, compiler } = await bundlePart(work);
  // Another executable of the same snapshot first, since only such a one can make code that fits.
  const made = { [text]: compiler, [code]: Buffer.alloc(0) };
  const compiling = await putIn(work, "compiler", withAssets(blob, made));
  const compiled = await compilePart(compiling, work);
  const whole = withAssets(blob, { [text]: part, [code]: compiled });
  const executable = await putIn(work, "sluice", whole);
  await filterEnvironment(executable, work);
  await proveAnswers(executable, work);
  const telling = await putIn(work, "telling", withTelling(whole));
  await proveCode(telling, work, { modules, partBytes: compiled.length });
  return executable;
}

const bareNode = "node";

async function putIn(work: string, name: string, blob: Buffer): Promise<string> {
  const executable = join(work, name);
  await copyFile(join(work, bareNode), executable);
  await writeFile(`${executable}.blob`, blob);
  await execa(
    "postject",
    [executable, "NODE_SEA_BLOB", `${executable}.blob`, "--sentinel-fuse", fuse],
    { preferLocal: true },
  );
  await chmod(executable, 0o755);
  return executable;
}
