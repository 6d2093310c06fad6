// Loads and reads iptables' tables in a netns: runs a batch of jobs in one child, which enters the netns once and works on
// all families and backends side by side. Edge.
import { monotonicMs } from "../../clock.ts";
import type { ExecResult } from "../../netns/exec.ts";
import type { Host } from "../../netns/host.ts";
import { readStartFailure } from "../../netns/start-failure.ts";
import { entering } from "../../netns/toolbox.ts";
import { traitsOf } from "../backend.ts";
import type { Family } from "../table.ts";
import { batchProblem, isPassing, outcomesIn, restoredIn } from "./answer.ts";
import { lackedWords } from "./failure.ts";
import type { Job, Outcome, Place } from "./job.ts";
import { argumentsOf, type JobWords } from "./layout.ts";
import { type Presence, parsePresence } from "./presence.ts";
import { scriptOf } from "./script.ts";

/** Runs jobs in one place, at most four (two families, two backends). Rejects with BatchError only. */
export type Client = (place: Place, jobs: readonly Job[], timeoutMs: number) => Promise<Outcome[]>;

/** The batch did not come to its end: no shell, no nsenter, no time left, or the netns would not be entered. */
export class BatchError extends Error {
  /** It was ended before its end, or a process could not be started: another try may do. */
  readonly isPassing: boolean;
  /** What a person should do; "" where we know nothing. */
  readonly advice: string;
  /** The jobs whose text had been loaded by then. */
  readonly restored: readonly Job[];

  constructor(problem: string, more: { isPassing?: boolean; restored?: readonly Job[] } = {}) {
    super(problem);
    this.name = "BatchError";
    this.isPassing = more.isPassing ?? false;
    this.advice = readStartFailure([problem])?.advice ?? "";
    this.restored = more.restored ?? [];
  }
}

/** Makes a client that works with the node's programs. With each batch it looks how far the families `looked` are there. */
export function makeClient(host: Host, looked: readonly Family[] = []): Client {
  return async (place, jobs, timeoutMs) => {
    const writes = jobs.some(({ restore }) => restore !== "");
    const ordered = jobs.toSorted((a, b) => Number(guardOf(b) !== "") - Number(guardOf(a) !== ""));
    const batch = { place, jobs: ordered, looked, timeoutMs };
    const mask = writes ? host.nssMask() : [];
    const end = monotonicMs() + timeoutMs;
    const first = await runBatch(host, batch, mask);
    // Where a mount namespace is refused (SELinux), users that are looked up slowly are better than none (istio#48746).
    // What the netns has is told ahead of the mounts; a job's line begins with its number.
    const isBegun = /^\d/m.test(first.outputs[0] ?? "");
    const isRefused = mask.length > 0 && !isBegun && !isPassing(first);
    const again = () => runBatch(host, { ...batch, timeoutMs: end - monotonicMs() }, []);
    const result = isRefused ? await again() : first;
    const outcomes = readOutcomes(ordered, result);
    const told = {
      ...(isRefused ? { unmasked: true as const } : {}),
      ...(looked.length > 0 ? { presence: parsePresence(result.outputs[0] ?? "") } : {}),
    };
    return jobs.flatMap((job) =>
      outcomes
        .filter((outcome) => outcome.job === job)
        .map((outcome) => ({ ...outcome, stderr: messagesOf(outcome, host), ...told })),
    );
  };
}

// legacy says that there is no such table where it has no right to ask for one.
function messagesOf({ job, restoreStatus, saveStatus, stderr }: Outcome, host: Host): string {
  if (restoreStatus === 0 && saveStatus === 0) return stderr;
  const { rights } = traitsOf(job.backend);
  const lacked = rights.filter((right) => host.lacks?.(right) === true);
  return lacked.length === 0 ? stderr : `${stderr}\n${lackedWords} ${lacked.join(" and ")}`;
}

/** Looks how far these families are there, and does nothing else. @throws BatchError when it could not be looked. */
export async function lookAt(
  host: Host,
  place: Place,
  { looked, timeoutMs }: Pick<Batch, "looked" | "timeoutMs">,
): Promise<Presence> {
  const result = await runBatch(host, { place, jobs: [], looked, timeoutMs }, []);
  const presence = parsePresence(result.outputs[0] ?? "");
  if (looked.every((family) => presence.evidence.has(family))) return presence;
  throw new BatchError(batchProblem([], result), { isPassing: isPassing(result) });
}

type Batch = {
  readonly place: Place;
  readonly jobs: readonly Job[];
  readonly looked: readonly Family[];
  readonly timeoutMs: number;
};

async function runBatch(
  host: Host,
  { place, jobs, looked, timeoutMs }: Batch,
  mask: readonly string[],
): Promise<ExecResult> {
  if (!(timeoutMs > 0))
    throw new BatchError("the time was over before the tools were started", { isPassing: true });
  const { toolbox } = host;
  const wait = lockWaitSeconds(timeoutMs);
  const work = {
    mount: mask.length === 0 ? "" : need(host, "mount"),
    mask,
    jobs: jobs.map((job, index) => wordsOf(job, index, wait)),
    native: jobs.flatMap(({ native }) => {
      return native === undefined ? [] : [native.program, ...native.listings];
    }),
  };
  const began = monotonicMs();
  const result = await host.exec({
    argv: [
      ...limited(host, timeoutMs, [...into(host, place), ...unsharing(host, mask), toolbox.shell]),
      "-c",
      scriptOf(looked),
      ...argumentsOf(work),
    ],
    // legacy's lock guards tables that are per netns with one file for the whole host; the netns' own file makes it one lock a
    // netns, with nothing to clean up (istio PR#47002).
    env: { ...toolbox.env, XTABLES_LOCKFILE: "/proc/self/ns/net" },
    // Also without a job: what enters the netns may have something to say.
    outputs: 1 + Math.max(1, 2 * jobs.length),
    // The child has a deadline of its own; this one is for a child that does not keep it.
    timeoutMs: timeoutMs + 1_000,
  });
  // timeout(1) goes down with the group that it ends, and so cannot tell.
  const isLate = monotonicMs() - began >= limitSeconds(timeoutMs) * 1_000;
  return { ...result, timedOut: result.timedOut || isLate };
}

// `timeout` heads the child's process group and ends all of it, also when the plugin itself was killed meanwhile.
function limited(
  { toolbox }: Host,
  timeoutMs: number,
  command: readonly string[],
): [string, ...string[]] {
  const seconds = String(limitSeconds(timeoutMs));
  const timeout = toolbox.find("timeout");
  const [first = toolbox.shell, ...rest] = command;
  return timeout === undefined
    ? [first, ...rest]
    : [timeout, "-s", "KILL", seconds, first, ...rest];
}

// timeout(1) takes 0 for no limit at all, and some take no fractions.
function limitSeconds(timeoutMs: number): number {
  return Math.max(1, Math.ceil(timeoutMs / 1_000));
}

function into(host: Host, place: Place): string[] {
  if (place === "host") return [];
  if (place === "scratch") return [need(host, "unshare"), "--net", "--"];
  need(host, "nsenter");
  return entering(host.toolbox, place.handle);
}

// A mount namespace of its own, in which the script hides what iptables must not ask for users (see nssMask).
function unsharing(host: Host, mask: readonly string[]): string[] {
  if (mask.length === 0) return [];
  return [need(host, "unshare"), "--mount", "--propagation", "slave", "--"];
}

function need({ toolbox }: Host, name: string): string {
  const program = toolbox.find(name);
  if (program !== undefined) return program;
  throw new BatchError(`${name} is not on the node; install util-linux`);
}

// Jobs that may come to nothing at once go first, so that the one which the shell runs itself is a real one.
function guardOf({ family, backend, restore, ifPossible }: Job): string {
  if (ifPossible === true) return "possible";
  return restore === "" ? (traitsOf(backend).tableList?.[family] ?? "") : "";
}

function wordsOf(job: Job, index: number, wait: string): JobWords {
  const { tools, restore, table = "nat" } = job;
  return {
    descriptor: String(2 + 2 * index),
    restore: restore === "" ? "" : tools.restore,
    save: tools.save,
    table: table === "all" || !traitsOf(job.backend).savesOne ? "" : table,
    guard: guardOf(job),
    wait: tools.waits ? wait : "",
    text: restore,
  };
}

// Ends before the batch is killed, so that the tool can say what it waited for.
function lockWaitSeconds(timeoutMs: number): string {
  return String(Math.min(5, Math.max(1, Math.floor(timeoutMs / 1_000) - 1)));
}

function readOutcomes(jobs: readonly Job[], result: ExecResult): Outcome[] {
  const outcomes = outcomesIn(jobs, result);
  if (outcomes.length === jobs.length) return outcomes;
  throw new BatchError(batchProblem(jobs, result), {
    isPassing: isPassing(result),
    restored: restoredIn(jobs, result),
  });
}
