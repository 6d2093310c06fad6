// SIGKILL at a random moment of one call: who is hit, when, and what the machine has left of it then.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { plugin } from "../../../lab/plugin.ts";
import { call, confOf, environmentOf } from "./call.ts";
import type { Lab } from "./lab.ts";
import { hasChild, killGroup, markedWith } from "./processes.ts";

/** Who is killed: the plugin's process group, its children's as well, or theirs alone. */
export const victims = ["plugin", "plugin and children", "children"] as const;

export type Kill = {
  readonly command: "ADD" | "DEL";
  readonly victim: (typeof victims)[number];
  /** The delay begins with the first tool, not with the call. */
  readonly aimed: boolean;
};

/** How long a call takes, and its part in which tools run, in milliseconds: as far as a kill may be put off. */
export type Timing = { wholeMs: number; toolsMs: number };

/** Measures a command on attachments of its own, as many at once as there are to be. */
export async function measure(
  command: Kill["command"],
  open: () => Promise<Lab>,
  atOnce: number,
): Promise<Timing> {
  const one = async () => {
    const lab = await open();
    try {
      const began = performance.now();
      const { stderr } = await call(command, lab);
      const toolsMs = Number(/"durationMs":([\d.]+)/.exec(stderr)?.[1]);
      return { wholeMs: performance.now() - began, toolsMs };
    } finally {
      lab.remove();
    }
  };
  await one();
  const all = await Promise.all(Array.from({ length: atOnce }, one));
  // The quickest: a kill that comes late hits nothing.
  return {
    wholeMs: Math.min(...all.map(({ wholeMs }) => wholeMs)),
    toolsMs: Math.min(...all.map(({ toolsMs }) => toolsMs)),
  };
}

/** What became of a kill: true where the call had ended before it came, and words for when it came. */
export type Killed = { readonly late: boolean; readonly when: string };

/** Starts a call, kills after a random delay, and waits until all that the call started has ended. */
export async function callAndKill(lab: Lab, kill: Kill, timing: Timing): Promise<Killed> {
  const { command, victim, aimed } = kill;
  const reach = aimed ? "toolsMs" : "wholeMs";
  const delayMs = Math.random() * timing[reach];
  const child = spawn(plugin, [], {
    env: environmentOf(command, lab),
    // A process group of its own, as a runtime that ends a plugin with all of its kind would have it.
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${plugin} cannot be started`);
  const ended = once(child, "exit");
  // A plugin that is killed early does not read.
  child.stdin.on("error", () => undefined).end(confOf(lab));
  if (aimed) while (child.exitCode === null && !hasChild(pid)) await sleep(1);
  await Promise.race([sleep(delayMs), ended]);
  const late = child.exitCode !== null;
  strike(lab.mark, pid, victim);
  await ended;
  while (markedWith(lab.mark).length > 0) await sleep(20);
  // How fast the machine is changes: one in five comes late, and so the end is reached as well.
  timing[reach] *= late ? 0.93 : 1.02;
  const since = aimed ? "its tools" : command;
  return { late, when: `${victim} killed ${delayMs.toFixed(1)} ms after the start of ${since}` };
}

function strike(mark: string, pluginPid: number, victim: Kill["victim"]): void {
  const started = markedWith(mark).filter(({ pid }) => pid !== pluginPid);
  if (victim !== "children") killGroup(pluginPid);
  if (victim !== "plugin") for (const { group } of started) killGroup(group);
}

/** Works through a list, several at once. */
export async function inParallel<Trial, Found>(
  trials: readonly Trial[],
  atOnce: number,
  work: (trial: Trial) => Promise<Found>,
): Promise<Found[]> {
  const left = [...trials];
  const found: Found[] = [];
  const worker = async () => {
    for (let trial = left.shift(); trial !== undefined; trial = left.shift()) {
      found.push(await work(trial));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return found;
}

/** The entry of a list at a number, which begins anew at its end. */
export function pick<T>(list: readonly T[], at: number): T {
  const found = list[at % list.length];
  if (found === undefined) throw new Error("an empty list");
  return found;
}
