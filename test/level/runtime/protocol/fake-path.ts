// Programs in a directory that is first in PATH: scripts that stand in for the machine's own of the same name.
import { chmodSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execaSync } from "execa";
import type { Scene } from "./scene.ts";

export type FakePath = {
  /** PATH with the directory at its head. */
  readonly path: string;
  readonly dir: string;
  /** Puts a shell script there, or in the place of the one that is there; `$real` is the machine's own program. */
  readonly put: (name: string, script: string) => void;
};

export function makeFakePath({ dir }: Scene): FakePath {
  const bin = join(dir, "bin");
  mkdirSync(bin);
  const put = (name: string, script: string) => {
    const file = join(bin, name);
    const real = execaSync("which", [name]).stdout;
    writeFileSync(`${file}.new`, `#!/bin/sh\nreal=${real}\n${script}\n`);
    chmodSync(`${file}.new`, 0o755);
    renameSync(`${file}.new`, file);
  };
  return { path: `${bin}:${process.env["PATH"]}`, dir: bin, put };
}

/** Does what the machine's own does. */
export const honest = 'exec "$real" "$@"';

/** Refuses whatever it is given. */
export const refusing = "cat >/dev/null; echo 'oh no' >&2; exit 3";
