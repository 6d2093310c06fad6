// Runs one child and gives back all that it said. The only place that starts processes.
// Synchronous below: the plugin does one thing at a time, and a child started so costs half of what an event loop does.
import { execaSync, type SyncResult } from "execa";

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

/** How long each stream may be. Twice of what anybody reads: who has more to say is ended. */
export const longestOutputBytes = 32 * 1024 * 1024;

export type Exec = (request: ExecRequest) => Promise<ExecResult>;

/** Runs the child to its end. Never rejects: how it ended is in the result. */
export const exec: Exec = (request) => {
  // For the library, 0 is no limit at all.
  if (!(request.timeoutMs > 0)) return Promise.resolve(unstarted(request.outputs));
  const [file, ...args] = request.argv;
  const more = new Array<"pipe">(Math.max(0, request.outputs - 2)).fill("pipe");
  const result = execaSync(file, args, {
    env: request.env,
    // Nothing of the runtime's environment reaches the tools: its LD_LIBRARY_PATH is for its own programs.
    extendEnv: false,
    // The runtime's own working directory may be gone.
    cwd: "/",
    stdio: ["ignore", "pipe", "pipe", ...more],
    timeout: Math.ceil(request.timeoutMs),
    maxBuffer: longestOutputBytes,
    // Not SIGKILL: the child is most often timeout(1), which hands this one on to all that it heads, and goes on to count for
    // what does not heed it. Killed, it would leave the others without a deadline when there is too much of an output.
    killSignal: "SIGTERM",
    reject: false,
    stripFinalNewline: false,
  });
  const outputs = Array.from({ length: request.outputs }, (_, i) => textOf(result.stdio[i + 1]));
  return Promise.resolve({
    exitCode: result.exitCode,
    timedOut: result.timedOut,
    ...(result.isMaxBuffer ? { isTooLong: true } : {}),
    startError: isUnstarted(result) ? (result.originalMessage ?? "") : "",
    outputs,
  });
};

type Ended = Pick<SyncResult, "exitCode" | "timedOut" | "isMaxBuffer">;

function isUnstarted({ exitCode, timedOut, isMaxBuffer }: Ended): boolean {
  return exitCode === undefined && !timedOut && !isMaxBuffer;
}

function unstarted(outputs: number): ExecResult {
  const silent = new Array<string>(outputs).fill("");
  return { exitCode: undefined, timedOut: true, startError: "", outputs: silent };
}

function textOf(output: unknown): string {
  return typeof output === "string" ? output : "";
}
