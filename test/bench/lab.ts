// The benchmark's place: a directory, and network namespaces that are thrown away.
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { type LabNetns, makeNetns, removeAllNetns } from "../lab/netns.ts";

export type Lab = {
  readonly dir: string;
  /** Writes a file and gives its path. */
  readonly file: (name: string, text: string) => string;
  /** Copies a program here and gives its path: as an installation leaves it, and nobody builds it anew meanwhile. */
  readonly install: (program: string) => string;
  /** An empty directory of its own, for a plugin's records. */
  readonly stateDir: () => string;
  /** A new netns that stays; its path. */
  readonly netns: () => string;
  /** So many new netns for one measurement; their paths. */
  readonly passing: (size: number) => readonly string[];
  /** Removes these, and waits for the kernel to be done with it, which else would be measured with what comes next. */
  readonly sweep: () => void;
  readonly remove: () => void;
};

/** The kernel takes netns down by and by, in a process of its own. */
const settlingMs = 400;

/** Makes the place; whoever makes it removes it. */
export function makeLab(): Lab {
  const dir = mkdtempSync(join(tmpdir(), "slc-bench-"));
  let count = 0;
  let passing: LabNetns[] = [];
  return {
    dir,
    file: (name, text) => {
      writeFileSync(join(dir, name), text);
      return join(dir, name);
    },
    install: (program) => {
      const path = join(dir, basename(program));
      copyFileSync(program, path);
      return path;
    },
    stateDir: () => {
      count += 1;
      const path = join(dir, `state-${count}`);
      mkdirSync(path);
      return path;
    },
    netns: () => makeNetns("bench").path,
    passing: (size) => {
      const made = Array.from({ length: size }, () => makeNetns("bench"));
      passing = [...passing, ...made];
      return made.map(({ path }) => path);
    },
    sweep: () => {
      for (const { remove } of passing) remove();
      passing = [];
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, settlingMs);
    },
    remove: () => {
      removeAllNetns();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
