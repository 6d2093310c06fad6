// What `npm run mutants` is asked for.
import { parseArgs } from "node:util";

export type Options = {
  /** By which declarations are drawn; said in the output, so that a run can be made again. */
  readonly seed: number;
  /** Declarations are drawn until they have so many lines together; Infinity for all of them. */
  readonly lines: number;
  /** Files and folders of which mutants are made; none for the usual ones. */
  readonly paths: readonly string[];
};

export const usage = `usage: npm run mutants -- [--seed N] [--lines N | --all] [FILE-OR-FOLDER]...
`;

/** So many lines have some 400 mutants, which take less than ten minutes on two CPUs. */
const sampleLines = 300;

/** Reads the command line: a sample of all, or all of what is named. @throws Error (or TypeError) for what it does not know. */
export function parseOptions(args: readonly string[], someSeed: number): Options {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      seed: { type: "string", default: String(someSeed) },
      lines: { type: "string" },
      all: { type: "boolean", default: false },
    },
  });
  const { seed, lines, all } = values;
  if (all && lines !== undefined) throw new Error("--lines and --all exclude each other");
  const usual = all || positionals.length > 0 ? Infinity : sampleLines;
  return {
    seed: whole("seed", seed),
    lines: lines === undefined ? usual : whole("lines", lines),
    paths: positionals,
  };
}

function whole(name: string, text: string): number {
  if (!/^[1-9]\d{0,9}$/.test(text)) throw new Error(`--${name} ${text}: a whole number is needed`);
  return Number(text);
}
