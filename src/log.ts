// JSON lines for people and collectors: to stderr, and to a file when the conf names one. Edge.
// Written at once, line by line: the process may be killed at any moment, and runtimes drop stderr when a command fails.
import { writeSync } from "node:fs";
import { pino } from "pino";
import { CniError } from "./cni/error.ts";
import { Fault } from "./fault.ts";
import { type LogFile, openLogFile } from "./log-file.ts";

type Fields = Readonly<Record<string, unknown>>;

/** What the program may say. Fields first, then one short sentence without data in it. */
export type Logger = {
  readonly [level in "debug" | "info" | "warn" | "error"]: (
    fields: Fields,
    message: string,
  ) => void;
};

export type LogSettings = { readonly level: string; readonly file: string };

const levels: readonly string[] = ["debug", "info", "warn", "error", "silent"] satisfies string[];

/**
 * Makes the logger of one command. An unknown level is "info". Failing to write is never an error of the command; a file that
 * cannot be used is told in the first line, on stderr.
 */
export function openLog({ level, file: path }: LogSettings): Logger {
  const name = level.toLowerCase();
  const options = {
    level: levels.includes(name) ? name : "info",
    base: { pid: process.pid },
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: describeError },
  };
  let file: LogFile | undefined;
  const log = pino(options, {
    write: (line: string) => {
      const said = cut(redact(line));
      writeQuietly(2, said);
      file?.append(said);
    },
  });
  try {
    if (path !== "") file = openLogFile(path);
  } catch (err) {
    log.warn(
      { log_file: path, err },
      "the log file cannot be used: what is said goes to stderr alone",
    );
  }
  // Functions and no methods: code that wraps one of them can pass the others on as they are.
  return {
    debug: (fields, message) => log.debug(fields, message),
    info: (fields, message) => log.info(fields, message),
    warn: (fields, message) => log.warn(fields, message),
    error: (fields, message) => log.error(fields, message),
  };
}

// Messages of parsers go on for lines, with a piece of what they parsed: of a kubeconfig that is the token.
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { name, message, stack = "" } = error;
  const at = stack.split("\n").filter((line) => line.startsWith("    at "));
  const isOurs = error instanceof CniError || error instanceof Fault;
  const more = isOurs ? { details: error.details } : {};
  const code = error instanceof CniError ? { code: error.code } : {};
  return { type: name, message: message.split("\n", 1)[0], ...code, ...more, stack: at.join("\n") };
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
 * Hides what looks like a token in any text that is about to be written or printed. Takes time as long as the text, since
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

/** What collectors take as one line, and a pipe in one piece with room for others. */
const longestLine = 8 * 1024;

/** Of each member, in characters: the first length with which the line is short enough. */
const lengths = [1_000, 300, 100, 30];

// The last resort: who logs keeps its fields short. Still a JSON object with all its members, each as far as there is room.
function cut(line: string): string {
  if (Buffer.byteLength(line) <= longestLine) return line;
  const members: object = JSON.parse(line);
  const shortened = lengths.map((most) => {
    const entries = Object.entries(members).map(([key, value]) => [key, shorten(value, most)]);
    return `${JSON.stringify(Object.fromEntries(entries))}\n`;
  });
  return shortened.find((text) => Buffer.byteLength(text) <= longestLine) ?? "";
}

function shorten(value: unknown, most: number): unknown {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length <= most ? value : `${text.slice(0, most)}... (${text.length} characters)`;
}

function writeQuietly(fd: number, line: string): void {
  try {
    writeSync(fd, line);
  } catch {
    // A closed stderr is the runtime's choice.
  }
}
