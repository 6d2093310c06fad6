// Reads why a child, or what it was to start, did not begin: a shortage of the moment, or a right that is missing. Pure.
// Texts are those of Node, of shells (dash, bash, busybox), coreutils and util-linux, under LC_ALL=C.

/** Why something did not begin. */
export type StartFailure = {
  /** The line that says so. */
  readonly said: string;
  /** A limit of the moment: another try may do. */
  readonly isPassing: boolean;
  /** What a person should do. */
  readonly advice: string;
};

type Pattern = Omit<StartFailure, "said"> & { readonly text: RegExp };

const shortage = {
  isPassing: true,
  advice:
    "processes, memory or descriptors are short: see pids.max and memory.max of the runtime's cgroup, and the node's limits; try again",
};

/** Each stands for a whole line. A fork that fails is Node's EAGAIN, or a shell's or timeout's own words. */
const patterns: readonly Pattern[] = [
  { text: /\bspawn(?:Sync)? (?:.* )?(?:EAGAIN|ENOMEM|EMFILE|ENFILE)$/m, ...shortage },
  {
    text: /^.*(?:\bcan(?:no|')t fork|\bv?fork: |\bfork system call failed|Pipe call failed).*$/im,
    ...shortage,
  },
  {
    text: /^.*\bnsenter: .*(?:Operation not permitted|Permission denied)$/m,
    isPassing: false,
    advice: "nsenter needs root with CAP_SYS_ADMIN (and CAP_SYS_PTRACE) to enter a netns",
  },
  {
    text: /^.*\bunshare: .*(?:Operation not permitted|Permission denied)$/m,
    isPassing: false,
    advice: "unshare needs root with CAP_SYS_ADMIN to make a netns",
  },
  {
    text: /^.*\bunshare: .*No space left on device$/m,
    isPassing: true,
    advice: "no further namespace is allowed: see user.max_net_namespaces; try again",
  },
];

/** Reads the texts, the first failure first; undefined where none is known for a start that failed. */
export function readStartFailure(texts: readonly string[]): StartFailure | undefined {
  for (const { text, isPassing, advice } of patterns) {
    const said = texts.flatMap((one) => text.exec(one) ?? []).at(0);
    if (said !== undefined) return { said: said.trim().slice(0, 300), isPassing, advice };
  }
  return undefined;
}
