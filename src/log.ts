// JSON lines for people and collectors: to stderr, and to a file when the conf names one. Edge.
// Written at once, line by line: the process may be killed at any moment, and runtimes drop stderr when a command fails.
import { closeSync, openSync, renameSync, statSync, writeSync } from "node:fs";
import { pino } from "pino";

type Fields = Readonly<Record<string, unknown>>;

/** What the program may say. Fields first, then one short sentence without data in it. */
export type Logger = {
  readonly [level in "debug" | "info" | "warn" | "error"]: (
    fields: Fields,
    message: string,
  ) => void;
};

export type LogSettings = { readonly level: string; readonly file: string };

/** The file is turned over (to `<file>.1`) at this size: two of them are all that a node gives for it. */
const largestLogBytes = 10 * 1024 * 1024;

const levels: readonly string[] = ["debug", "info", "warn", "error", "silent"] satisfies string[];

/** Makes the logger of one command. An unknown level is "info". Failing to write is never an error of the command. */
export function openLog({ level, file }: LogSettings): Logger {
  const name = level.toLowerCase();
  const options = {
    level: levels.includes(name) ? name : "info",
    base: { pid: process.pid },
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  return pino(options, {
    write: (line: string) => {
      writeQuietly(2, redact(line));
      if (file !== "") append(file, redact(line));
    },
  });
}

const secrets = /eyJ[\w-]+\.[\w-]+\.[\w-]+|(?<="(?:token|authorization|k8s_auth_token)":")[^"]+/gi;

// Whatever text found its way into a line: what looks like a token does not leave.
function redact(line: string): string {
  return line.replaceAll(secrets, "[redacted]");
}

function append(file: string, line: string): void {
  try {
    if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > largestLogBytes) {
      renameSync(file, `${file}.1`);
    }
    const fd = openSync(file, "a", 0o600);
    writeQuietly(fd, line);
    closeSync(fd);
  } catch {
    // A full or read-only disk must not keep a pod from starting; the line is on stderr as well.
  }
}

function writeQuietly(fd: number, line: string): void {
  try {
    writeSync(fd, line);
  } catch {
    // A closed stderr is the runtime's choice.
  }
}
