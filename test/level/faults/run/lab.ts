// One attachment to hurt: a netns, a state directory, and what must hold at the end of every trial.
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore } from "../../../../src/attachment/store.ts";
import type { Backend } from "../../../../src/netfilter/table.ts";
import { makeNetns } from "../../../lab/netns.ts";
import { call, type Subject } from "./call.ts";
import { everyTable, nameOf, readAll } from "./tables.ts";

export type Lab = Subject & { readonly mark: string; readonly remove: () => void };

/** Makes it. `restore`: a shell script in the place of all restore programs. */
export function makeLab(backend: Backend, restore?: string): Lab {
  const netns = makeNetns("kill");
  const stateDir = mkdtempSync(join(tmpdir(), "slc-kill-"));
  const remove = () => {
    netns.remove();
    rmSync(stateDir, { recursive: true, force: true });
  };
  const mark = join(stateDir, "bin");
  if (restore !== undefined) {
    mkdirSync(mark);
    for (const name of ["iptables", "ip6tables"]) {
      writeFileSync(join(mark, `${name}-${backend}-restore`), restore, { mode: 0o755 });
    }
  }
  return { netns, backend, stateDir, mark, remove };
}

/** The names of the attachment's record and of what else there is beside it. */
export function recordsOf({ stateDir }: Subject): string[] {
  return namesIn(join(stateDir, "attachments"));
}

/** What a last DEL leaves behind: rules of ours in any table, a record, a temporary file. Nothing, when all is well. */
export async function leftByDel(lab: Lab): Promise<string[]> {
  const del = await call("DEL", lab);
  const tables = await readAll(lab.netns);
  const rules = everyTable.map(nameOf).flatMap((name) => {
    const own = tables.get(name)?.own ?? [];
    return own.length === 0 ? [] : [`DEL leaves rules in ${name}: ${own.join(" | ")}`];
  });
  const known = ["attachments", "backend.json", "bin", "locks"];
  const files = [
    ...recordsOf(lab),
    ...(await locksOf(lab)),
    ...namesIn(lab.stateDir).filter((name) => !known.includes(name)),
  ];
  return [
    ...(del.exitCode === 0 && del.stdout === ""
      ? []
      : [`DEL ended with ${del.exitCode}: ${del.stdout}`]),
    ...rules.map((fault) => `${fault} (${del.stderr.trim()})`),
    ...files.map((name) => `DEL leaves the file ${name}`),
  ];
}

// What a killed process left of its lock is taken away by whoever comes for it next; a name that never came into its place,
// an hour later: nobody looks at it meanwhile.
async function locksOf({ netns: { path }, stateDir }: Lab): Promise<string[]> {
  const { dev: device, ino: inode } = statSync(path);
  const lock = await openStore(stateDir).lock({ path, device, inode }, () => 1_000);
  lock.release();
  return namesIn(join(stateDir, "locks")).filter((name) => !name.startsWith("."));
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    // No directory, nothing in it.
    return [];
  }
}
