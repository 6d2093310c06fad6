// Running a command for a step of set-up: silent when it works, its output's ends when it does not.
import { spawnSync } from "node:child_process";

// some tools say what is wrong first, and then a page of usage
const firstLines = 8;
const lastLines = 12;

/** @param {string} output */
const ends = (output) => {
  const lines = output.split("\n").filter((line) => line.trim() !== "");
  return lines.length > firstLines + lastLines
    ? [...lines.slice(0, firstLines), "...", ...lines.slice(-lastLines)]
    : lines;
};

export class CommandFailure extends Error {
  /**
   * @param {readonly string[]} argv
   * @param {string} outcome
   * @param {string} output
   */
  constructor(argv, outcome, output) {
    super(`${argv.join(" ")}: ${outcome}`);
    this.command = argv.join(" ");
    this.outcome = outcome;
    this.output = ends(output);
  }
}

/**
 * Runs a command to its end and gives its stdout; throws CommandFailure when that is not exit 0.
 * @param {readonly [string, ...string[]]} argv
 * @param {Record<string, string>} [env] added to the process's own
 */
export const run = (argv, env = {}) => {
  const [command, ...args] = argv;
  const done = spawnSync(command, args, {
    encoding: "utf8",
    env: { ...process.env, ...env },
    maxBuffer: 1 << 28,
    stdio: ["ignore", "pipe", "pipe"],
  });
  if (done.error) throw new CommandFailure(argv, done.error.message, "");
  if (done.status !== 0) {
    const outcome = done.signal ? `killed by ${done.signal}` : `exit ${done.status}`;
    throw new CommandFailure(argv, outcome, `${done.stdout}\n${done.stderr}`);
  }
  return done.stdout;
};

/**
 * The command's stdout, or undefined when it does not exist or fails.
 * @param {readonly [string, ...string[]]} argv
 */
export const ask = (argv) => {
  const [command, ...args] = argv;
  const done = spawnSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  return done.status === 0 ? done.stdout : undefined;
};
