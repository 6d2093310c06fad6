// A program that runs in a pod for as long as the demo needs it: started, waited for, ended by its own process id.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { type Pod, searchPath } from "../lab/host.ts";
import { inNetns } from "../lab/pod-nat.ts";

export type Daemon = {
  readonly pid: number;
  /** What it printed to stdout so far. */
  readonly lines: readonly string[];
  /** Waits until it listens on the ports. */
  readonly listening: (ports: readonly number[]) => Promise<void>;
  /** Ends it without waiting: all that can be done when the demo itself is being ended. */
  readonly kill: () => void;
  readonly stop: () => Promise<void>;
};

/** How long anything that is bound to come may take on a busy machine. */
const patienceMs = 10_000;

/** Starts a program in a pod. It sees its stdin end when the demo does, in whatever way. */
export function startDaemon(pod: Pod, argv: readonly string[]): Daemon {
  const [file = "", ...args] = inNetns(pod.path, argv);
  // The demo's own directory may be one that the program's user cannot enter.
  const child = spawn(file, args, { env: { PATH: searchPath }, cwd: "/", stdio: "pipe" });
  const said: Record<"lines" | "complaints", string[]> = { lines: [], complaints: [] };
  createInterface({ input: child.stdout }).on("line", (line) => said.lines.push(line));
  createInterface({ input: child.stderr }).on("line", (line) => said.complaints.push(line));
  child.on("error", (error) => said.complaints.push(error.message));
  const pid = child.pid ?? 0;
  const isRunning = () => pid !== 0 && child.exitCode === null && child.signalCode === null;
  const kill = () => void child.kill("SIGKILL");
  return {
    pid,
    lines: said.lines,
    kill,
    listening: async (ports) => {
      const look = () => !isRunning() || ports.every((port) => isListening(pid, port));
      await until(look, `${argv.join(" ")} to listen`);
      if (!isRunning()) throw new Error([`${argv.join(" ")} ended`, ...said.complaints].join("\n"));
    },
    stop: async () => {
      kill();
      await until(() => !isRunning(), `the end of process ${pid}`);
    },
  };
}

/** Waits until there is something to be seen, and gives it. */
export async function until<T>(look: () => T | false | undefined, what: string): Promise<T> {
  const end = performance.now() + patienceMs;
  for (;;) {
    const seen = look();
    if (seen !== undefined && seen !== false) return seen;
    if (performance.now() > end) throw new Error(`Waited ${patienceMs / 1_000} s for ${what}`);
    await setTimeout(5);
  }
}

/** The user that a process runs as: the effective one. */
export function uidOf(pid: number): number {
  return Number(/^Uid:\t\d+\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

// The kernel's table of the process' own netns: local address, remote address, state 0A for LISTEN.
function isListening(pid: number, port: number): boolean {
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  const listening = new RegExp(`: [0-9A-F]{8}:${hex} [0-9A-F]{8}:0000 0A `);
  try {
    return listening.test(readFileSync(`/proc/${pid}/net/tcp`, "utf8"));
  } catch {
    // It has just ended; we hear of that next.
    return false;
  }
}
