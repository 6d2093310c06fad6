// Who started whom: found by a mark in the environment, which outlives the process that started them.
import { readdirSync, readFileSync } from "node:fs";

export type Process = { readonly pid: number; readonly group: number };

/** The processes that have the mark in their environment. */
export function markedWith(mark: string): Process[] {
  const numbers = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return numbers.flatMap((name) => {
    if (!textOf(`/proc/${name}/environ`).includes(mark)) return [];
    // After the name, which may hold anything: state, parent, group.
    const [, , group] = textOf(`/proc/${name}/stat`).split(") ").at(-1)?.split(" ") ?? [];
    return group === undefined ? [] : [{ pid: Number(name), group: Number(group) }];
  });
}

/** True when the process has started another, which has not ended. */
export function hasChild(pid: number | undefined): boolean {
  return textOf(`/proc/${pid}/task/${pid}/children`) !== "";
}

/** Kills all of a process group; one that has ended is fine. */
export function killGroup(group: number): void {
  try {
    process.kill(-group, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    // It has ended meanwhile.
    return "";
  }
}
