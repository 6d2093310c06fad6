// How the script of a batch is given its work: the order of its arguments, for who writes them (client.ts) and for who stands
// in for the script (warm.ts, the tests' fake). script.ts takes them one by one in this order. Pure.

/** What the script is to do. */
export type Work = {
  /** mount(8), for the files to hide. */
  readonly mount: string;
  /** Files to hide from what is run; the caller has given the script a mount namespace for it. */
  readonly mask: readonly string[];
  readonly jobs: readonly JobWords[];
  /** nft, and what to ask it for; empty where it is not asked. */
  readonly native: readonly string[];
};

/** One job's arguments, all of them words. */
export type JobWords = {
  /** The descriptor for messages; the one after it is for the save's text. */
  readonly descriptor: string;
  /** The restore program, or "" where nothing is written. */
  readonly restore: string;
  readonly save: string;
  /** The table for the save, or "" for all. */
  readonly table: string;
  /**
   * The file that says whether there is anything to read; or the word "possible" where there is something to do only if IPv6 is
   * possible; or "".
   */
  readonly guard: string;
  /** Seconds to wait for the lock, or "" for a restore that does not know the option. */
  readonly wait: string;
  /** The restore text. */
  readonly text: string;
};

/** The script's own name: its arguments come after it. */
const scriptName = "sluice";

/** How many words a job has. */
export const wordsPerJob = 7;

/** The words behind `sh -c SCRIPT`. */
export function argumentsOf({ mount, mask, jobs, native }: Work): string[] {
  const words = jobs.flatMap(({ descriptor, restore, save, table, guard, wait, text }) => {
    return [descriptor, restore, save, table, guard, wait, text];
  });
  return [scriptName, mount, mask.join(" "), ...words, ...native];
}

/** Reads them back, from a whole command line. */
export function readArguments(argv: readonly string[]): Work {
  const [mount = "", mask = "", ...rest] = argv.slice(argv.indexOf(scriptName) + 1);
  const count = Math.floor(rest.length / wordsPerJob);
  // nft's words are fewer than a job's.
  const jobs = Array.from({ length: count }, (_, i) => jobIn(rest.slice(wordsPerJob * i)));
  const hidden = mask === "" ? [] : mask.split(" ");
  return { mount, mask: hidden, jobs, native: rest.slice(wordsPerJob * count) };
}

function jobIn(words: readonly string[]): JobWords {
  const [descriptor = "", restore = "", save = "", table = "", guard = "", wait = "", text = ""] =
    words;
  return { descriptor, restore, save, table, guard, wait, text };
}
