// The benchmark's place: a directory, and network namespaces that are thrown away.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeNetns, removeAllNetns } from "../../test/lab/netns.ts";

export type Lab = {
  readonly dir: string;
  /** Writes a file and gives its path. */
  readonly file: (name: string, text: string) => string;
  /** An empty directory of its own, for a plugin's records. */
  readonly stateDir: () => string;
  readonly netns: () => LabNetns;
  /** So many netns, all new; those of the time before are gone. */
  readonly crowd: (size: number) => readonly LabNetns[];
  readonly remove: () => void;
};

export type LabNetns = { readonly path: string; readonly remove: () => void };

/** Makes the place; whoever makes it removes it. */
export function makeLab(): Lab {
  const dir = mkdtempSync(join(tmpdir(), "slc-bench-"));
  let count = 0;
  let crowd: LabNetns[] = [];
  const netns = () => makeNetns("bench");
  return {
    dir,
    file: (name, text) => {
      writeFileSync(join(dir, name), text);
      return join(dir, name);
    },
    stateDir: () => {
      count += 1;
      const path = join(dir, `state-${count}`);
      mkdirSync(path);
      return path;
    },
    netns,
    crowd: (size) => {
      for (const { remove } of crowd) remove();
      crowd = Array.from({ length: size }, netns);
      return crowd;
    },
    remove: () => {
      removeAllNetns();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
