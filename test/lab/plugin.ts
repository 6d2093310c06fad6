// Calls the built plugin as a runtime does: environment, stdin, stdout, exit status.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { execaSync } from "execa";

export const root: string = join(import.meta.dirname, "../..");
/** The executable, which needs no Node. */
export const executable: string = join(root, "dist/sluice");
/** The same program as a bundle, run by the pinned Node. */
export const bundle: string = join(root, "dist/sluice.cjs");
/** The runtime that the project pins, whatever node the machine has. */
export const node: string = join(root, "node_modules/.bin/node");

/** What the tests call: the executable, or by SLUICE_FORM=bundle the bundle as a program that brings its Node. */
export const plugin: string =
  process.env["SLUICE_FORM"] === "bundle" ? bundleAsProgram() : executable;

function bundleAsProgram(): string {
  const file = join(root, "dist/sluice-bundle");
  writeFileSync(file, `#!/bin/sh\nexec ${node} ${bundle} "$@"\n`, { mode: 0o755 });
  return file;
}

export type CniAnswer = { exitCode: number | undefined; stdout: string; stderr: string };

/** One call of the executable; `env` are CNI_* variables without the prefix, `conf` is what goes to stdin. */
export function callPlugin(env: Record<string, string>, conf: unknown): CniAnswer {
  const cni = Object.entries(env).map(([key, value]) => [`CNI_${key}`, value]);
  const input = typeof conf === "string" ? conf : JSON.stringify(conf);
  const result = execaSync(plugin, [], {
    env: { PATH: process.env["PATH"] ?? "", ...Object.fromEntries(cni) },
    extendEnv: false,
    input,
    reject: false,
    stripFinalNewline: false,
  });
  return { exitCode: result.exitCode, stdout: result.stdout, stderr: result.stderr };
}
