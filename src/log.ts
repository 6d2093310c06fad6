// JSON lines for people and collectors: to stderr, and to a file when the conf names one. Edge.
// Written at once, line by line: the process may be killed at any moment, and runtimes drop stderr when a command fails.
import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  renameSync,
  rmdirSync,
  statSync,
  writeSync,
} from "node:fs";
import { pino } from "pino";
import { CniError } from "./cni/error.ts";

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
    serializers: { err: describeError },
  };
  return pino(options, {
    write: (line: string) => {
      const said = redact(line);
      writeQuietly(2, said);
      if (file !== "") append(file, said);
    },
  });
}

// Messages of parsers go on for lines, with a piece of what they parsed: of a kubeconfig that is the token.
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { name, message, stack = "" } = error;
  const at = stack.split("\n").filter((line) => line.startsWith("    at "));
  const more = error instanceof CniError ? { code: error.code, details: error.details } : {};
  return { type: name, message: message.split("\n", 1)[0], ...more, stack: at.join("\n") };
}

/** What looks like a secret. `marks`, in small letters: without one of these there is nothing to look for. */
const secrets = [
  // A JWT, wherever it stands.
  { marks: ["eyj"], pattern: /[\w.-]+/g, hide: hideJwt },
  { marks: ["bearer"], pattern: /(\bBearer\s+)[\w.~+/=-]+/gi, hide: hideRest },
  // A member of an object, also of one that stands in a text of the line.
  {
    marks: ["token", "authorization", "client-key-data", "password"],
    pattern:
      /("(?:token|authorization|k8s_auth_token|client-key-data|password)\\*"\s*:\s*\\*")[^"\\]+/gi,
    hide: hideRest,
  },
];

/**
 * Whatever text found its way into what is said: what looks like a token does not leave. Takes time as long as the text, since
 * anybody may have written it: no pattern has two parts that could match the same characters, nor looks back.
 */
export function redact(text: string): string {
  const small = text.toLowerCase();
  return secrets
    .filter(({ marks }) => marks.some((mark) => small.includes(mark)))
    .reduce((rest, { pattern, hide }) => rest.replaceAll(pattern, hide), text);
}

const hidden = "[redacted]";

function hideRest(_match: string, mark: string): string {
  return mark + hidden;
}

// Three parts or more with points between, from the first mark of one on: header, claims, signature.
function hideJwt(word: string): string {
  const at = word.indexOf("eyJ");
  if (at === -1 || !/^[^.]*\.[^.]*\./.test(word.slice(at))) return word;
  return word.slice(0, at) + hidden;
}

// Non-blocking: a pipe that nobody reads must not keep a pod from starting.
const appending =
  constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;

function append(file: string, line: string): void {
  try {
    if (sizeOf(file) > largestLogBytes) turnOver(file);
    const fd = openSync(file, appending, 0o600);
    writeQuietly(fd, line);
    closeSync(fd);
  } catch {
    // A full or read-only disk must not keep a pod from starting; the line is on stderr as well.
  }
}

/** Who holds the turn longer than this was killed. */
const turnMs = 10_000;

// Of the processes that find the file full, one turns it over: the next would put the new file in the place of the old.
function turnOver(file: string): void {
  const turn = `${file}.turn`;
  const since = statSync(turn, { throwIfNoEntry: false })?.mtimeMs;
  if (since !== undefined && Date.now() - since > turnMs) rmdirSync(turn);
  try {
    mkdirSync(turn);
  } catch {
    // Another process is at it. Lines go on into whichever file has the name.
    return;
  }
  try {
    if (sizeOf(file) > largestLogBytes) renameSync(file, `${file}.1`);
  } finally {
    rmdirSync(turn);
  }
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

function writeQuietly(fd: number, line: string): void {
  try {
    writeSync(fd, line);
  } catch {
    // A closed stderr is the runtime's choice.
  }
}
