// Reads what the one child of a batch answered: status lines on its stdout, and two streams a job (see script.ts). Pure but
// for the words of a start that failed.
import { type ExecResult, longestOutputBytes } from "../../netns/exec.ts";
import { readStartFailure, type StartFailure } from "../../netns/start-failure.ts";
import { longestSaveChars } from "../save.ts";
import type { Job, NativeAnswer, NativeLook, Outcome } from "./job.ts";

/** The outcomes of the jobs that came to their end, in their order. */
export function outcomesIn(jobs: readonly Job[], result: ExecResult): Outcome[] {
  const [statuses = "", ...streams] = result.outputs;
  return jobs.flatMap((job, i): Outcome[] => {
    if (statuses.split("\n").includes(`${i} absent`)) return [{ job, ...nothingDone }];
    const found = new RegExp(`^${i} (\\d+) (\\d+)$`, "m").exec(statuses);
    if (found === null) return [];
    const [restoreStatus, saveStatus] = [Number(found[1]), Number(found[2])];
    const [stderr = "", saved = ""] = streams.slice(2 * i).map(ofJob);
    const told = { job, restoreStatus, saveStatus, saved, stderr: stderr.trim() };
    if (job.native === undefined) return [told];
    return [{ ...told, native: nativeAnswers(job.native, statuses, streams.slice(-2)) }];
  });
}

/** The jobs whose text had been loaded, as far as the child came. */
export function restoredIn(jobs: readonly Job[], { outputs }: ExecResult): Job[] {
  return jobs.filter(({ restore }, i) => {
    return restore !== "" && new RegExp(`^${i} 0\\b`, "m").test(outputs[0] ?? "");
  });
}

// nft's answers stand in the last job's streams, each behind a NUL: neither a save nor JSON can hold one.
function nativeAnswers(
  { listings }: NativeLook,
  statuses: string,
  streams: readonly string[],
): NativeAnswer[] {
  const ended = [...statuses.matchAll(/^nft (\d+)$/gm)].map(([, status]) => Number(status));
  const [said, texts] = streams.map((stream) => stream.split("\0").slice(1));
  return listings.map((listing, i) => {
    const words = { text: texts?.[i] ?? "", said: (said?.[i] ?? "").trim() };
    return { listing, status: ended[i], ...words };
  });
}

function ofJob(stream: string): string {
  return stream.split("\0", 1)[0] ?? "";
}

const nothingDone = {
  restoreStatus: 0,
  saveStatus: 0,
  saved: "",
  stderr: "",
  absent: true,
} as const;

/** Why the batch did not come to its end, and where it was. */
export function batchProblem(jobs: readonly Job[], result: ExecResult): string {
  const [statuses = "", said = ""] = result.outputs;
  const failure = startFailureOf(result);
  if (result.isTooLong === true) return tooLongProblem(jobs, result);
  if (failure?.isPassing === true) return `a process could not be started: ${failure.said}`;
  if (result.startError !== "") return result.startError;
  if (!wasEnded(result)) {
    const line = said.trim().split("\n", 1)[0] ?? "";
    return `entering the netns failed with exit status ${result.exitCode}: ${line || "no message"}`;
  }
  const open = jobs.flatMap((job, i) => {
    if (new RegExp(`^${i} (\\d+ \\d+|absent)$`, "m").test(statuses)) return [];
    const isRestored = job.restore === "" || new RegExp(`^${i} `, "m").test(statuses);
    const program = isRestored ? job.tools.save : job.tools.restore;
    return [`${program} (${job.backend}, ${job.family}, table ${job.table ?? "nat"})`];
  });
  const how = result.timedOut || result.exitCode === 137 ? tooLate : "was killed";
  return `${open.join(" and ") || "a look into the netns"} ${how}`;
}

function tooLongProblem(jobs: readonly Job[], { outputs }: ExecResult): string {
  const long = jobs.filter((_, i) => {
    return outputs.slice(1 + 2 * i, 3 + 2 * i).some(({ length }) => length > longestSaveChars);
  });
  const programs = long.map(
    ({ tools, backend, family }) => `${tools.save} (${backend}, ${family})`,
  );
  return `${programs.join(" and ") || "a tool"} printed more than ${longestOutputBytes} bytes, which nobody's rules take`;
}

const tooLate = "did not end within the deadline; run it by hand to see what it waits for";

/** Another try may do. */
export function isPassing(result: ExecResult): boolean {
  return wasEnded(result) || startFailureOf(result)?.isPassing === true;
}

/**
 * The batch did not end by itself: the deadline ended it, or somebody did. Or that became of a part of it: the shell itself
 * ends well then, with a job that told nothing.
 */
function wasEnded({ timedOut, exitCode, startError, isTooLong }: ExecResult): boolean {
  if (isTooLong === true) return false;
  const isUnsaid = exitCode === 0 || (exitCode === undefined && startError === "");
  return timedOut || exitCode === 137 || isUnsaid;
}

// Every second stream is a job's messages; those of the shell itself are among the first job's.
function startFailureOf({ startError, outputs }: ExecResult): StartFailure | undefined {
  return readStartFailure([startError, ...outputs.filter((_, i) => i % 2 === 1)]);
}
