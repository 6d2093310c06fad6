// A program that runs in a pod for as long as the demo needs it: started, waited for, ended by its own process id.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { nodePath, type Pod } from "../lab/host.ts";
import { inNetns } from "../lab/pod-nat.ts";

export type Daemon = {
  readonly pid: number;
  /** What it printed to stdout so far. */
  readonly lines: readonly string[];
  /** True until it has ended and was waited for. */
  readonly isRunning: () => boolean;
  /** Ends it without waiting: all that can be done when the demo itself is being ended. */
  readonly kill: () => void;
  readonly stop: () => Promise<void>;
};

/** How long anything that is bound to come may take on a busy machine. */
const patienceMs = 10_000;

/** Starts a program in a pod and waits until it listens on the ports. It sees its stdin end when the demo does. */
export async function startDaemon(
  pod: Pod,
  argv: readonly string[],
  ports: readonly number[],
): Promise<Daemon> {
  const [file = "", ...args] = inNetns(pod.path, argv);
  const child = spawn(file, args, { env: { PATH: nodePath }, stdio: "pipe" });
  const lines: string[] = [];
  const complaints: string[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  createInterface({ input: child.stderr }).on("line", (line) => complaints.push(line));
  child.on("error", (error) => complaints.push(error.message));
  const isRunning = () =>
    child.pid !== undefined && child.exitCode === null && child.signalCode === null;
  const pid = child.pid ?? 0;
  const kill = () => void child.kill("SIGKILL");
  const stop = async () => {
    kill();
    await until(() => !isRunning(), `the end of process ${pid}`);
  };
  try {
    const ready = () => !isRunning() || ports.every((port) => isListening(pid, port));
    await until(ready, `${argv.join(" ")} to listen`);
    if (!isRunning()) throw new Error([`${argv.join(" ")} ended`, ...complaints].join("\n"));
  } catch (error) {
    kill();
    throw error;
  }
  return { pid, lines, isRunning, kill, stop };
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
  return listening.test(readFileSync(`/proc/${pid}/net/tcp`, "utf8"));
}
