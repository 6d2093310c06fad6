// Runs one child and gives back all that it said. The only place that starts processes, but for exec-async.ts.
// Synchronous below: the plugin does one thing at a time, and a child started so costs half of what an event loop does.
import { execaSync, type SyncOptions } from "execa";

/** One child process. */
export type ExecRequest = {
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  /** How many streams to read from file descriptor 1 on, at least two: stdout, stderr, and what else the child writes. */
  readonly outputs: number;
  /** With nothing left, nothing is started: the result is that of a child that took too long. */
  readonly timeoutMs: number;
};

/** How the child ended. `outputs[0]` is what came from descriptor 1. */
export type ExecResult = {
  /** The exit status; undefined when the child was ended by a signal or never began. */
  readonly exitCode: number | undefined;
  readonly timedOut: boolean;
  /** It was ended because it had too much to say; the streams are cut. */
  readonly isTooLong?: true;
  /** Why the child could not be started; "" when it was. */
  readonly startError: string;
  readonly outputs: readonly string[];
};

/** How much a child may say, over all streams. Twice of what anybody reads: who has more to say is ended. */
export const longestOutputBytes = 32 * 1024 * 1024;

export type Exec = (request: ExecRequest) => Promise<ExecResult>;

/** Runs the child to its end. Never rejects: how it ended is in the result. */
export const exec: Exec = (request) => {
  if (!hasTime(request)) return Promise.resolve(unstarted(request));
  const [file, ...args] = request.argv;
  const timeout = Math.ceil(request.timeoutMs);
  return Promise.resolve(
    resultOf(request, execaSync(file, args, { ...settingsOf(request), timeout })),
  );
};

/** Whether there is time for a child. For libraries, 0 is no limit at all. */
export function hasTime({ timeoutMs }: ExecRequest): boolean {
  return timeoutMs > 0;
}

/** The result for a child that is not started, since there is no time. */
export function unstarted({ outputs }: ExecRequest): ExecResult {
  const silent = new Array<string>(outputs).fill("");
  return { exitCode: undefined, timedOut: true, startError: "", outputs: silent };
}

/** How every child is run, as execa's options: all but how long it may take. */
export function settingsOf({ env, outputs }: ExecRequest) {
  const more = new Array<"pipe">(Math.max(0, outputs - 2)).fill("pipe");
  return {
    env,
    // Nothing of the runtime's environment reaches the tools: its LD_LIBRARY_PATH is for its own programs.
    extendEnv: false,
    // The runtime's own working directory may be gone.
    cwd: "/",
    stdio: ["ignore", "pipe", "pipe", ...more],
    maxBuffer: longestOutputBytes,
    // Not SIGKILL: the child is most often timeout(1), which hands this one on to all that it heads, and goes on to count for
    // what does not heed it. Killed, it would leave the others without a deadline when there is too much of an output.
    killSignal: "SIGTERM",
    reject: false,
    stripFinalNewline: false,
  } satisfies SyncOptions;
}

/** How a child ended, as execa tells; what it said, as text or bytes, by file descriptor. */
export type Ended = {
  readonly exitCode?: number | undefined;
  readonly timedOut: boolean;
  readonly isMaxBuffer: boolean;
  readonly originalMessage?: string | undefined;
  readonly stdio: readonly unknown[];
};

/** The result of a child that was, or was to be, started. */
export function resultOf({ outputs }: ExecRequest, ended: Ended): ExecResult {
  const { exitCode, timedOut, isMaxBuffer, originalMessage = "", stdio } = ended;
  const isUnstarted = exitCode === undefined && !timedOut && !isMaxBuffer;
  return {
    exitCode,
    timedOut,
    ...(isMaxBuffer ? { isTooLong: true } : {}),
    startError: isUnstarted ? originalMessage : "",
    outputs: Array.from({ length: outputs }, (_, i) => textOf(stdio[i + 1])),
  };
}

function textOf(output: unknown): string {
  if (output instanceof Uint8Array) return Buffer.from(output).toString();
  return typeof output === "string" ? output : "";
}
