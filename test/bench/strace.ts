// Counts the processes that a program starts, from what strace wrote of it: pure.

export type Started = {
  /** By the program itself. */
  readonly children: number;
  /** By it and by all that it started. */
  readonly all: number;
};

/** strace's arguments, before the program's own. */
export function straceArgv(file: string): [string, ...string[]] {
  return ["strace", "-f", "-qq", "-o", file, "-e", "trace=clone,clone3,fork,vfork"];
}

/**
 * Reads a file of `strace -f -o`: `PID clone(...) = CHILD`, or in two lines when another process came between. What is
 * started with CLONE_THREAD is a thread of the same process.
 */
export function countStarted(trace: string): Started {
  const starts = readStarts(trace);
  const threads = starts.filter(({ call }) => call.includes("CLONE_THREAD"));
  const forks = starts.filter(({ call }) => !call.includes("CLONE_THREAD"));
  const ownThreads = new Set(threads.map(({ child }) => child));
  const program = /^\d+/.exec(trace)?.[0];
  const isProgram = (pid: string) => pid === program || ownThreads.has(pid);
  return { children: forks.filter(({ parent }) => isProgram(parent)).length, all: forks.length };
}

type Start = { readonly parent: string; readonly child: string; readonly call: string };

function readStarts(trace: string): Start[] {
  const begun = new Map<string, string>();
  return trace.split("\n").flatMap((line): Start[] => {
    const [, parent = "", said = ""] = /^(\d+)\s+(.*)$/.exec(line) ?? [];
    const call = said.startsWith("<... ") ? `${begun.get(parent) ?? ""}${said}` : said;
    if (said.endsWith("<unfinished ...>")) begun.set(parent, said);
    const child = / = (\d+)$/.exec(said)?.[1];
    return child === undefined ? [] : [{ parent, child, call }];
  });
}
