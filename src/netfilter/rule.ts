// Reads a rule as iptables-save prints it: `-A CHAIN [conditions] [-m match options]... [-j|-g TARGET options]`. Whoever may
// write rules in a pod's netns chooses the values in it, so a word is what its place makes it, never what it looks like:
// of `-m string --string "-p"` the `-p` is a value. Linear in the line; what is not of this form is not read at all.
import type { RuleText } from "./table.ts";

/** One word of a line, and where it stands there. A quoted one is a value, whatever it says. */
export type Word = {
  readonly text: string;
  readonly quoted: boolean;
  readonly start: number;
  readonly end: number;
};

/** What stands ahead of the matches: `! -d 10.0.0.0/8`. */
export type Condition = {
  readonly option: string;
  readonly value: string;
  readonly inverted: boolean;
};

/** `-m NAME OPTIONS`; `start` is where its `-m` stands in the line. */
export type Match = {
  readonly name: string;
  readonly options: readonly Word[];
  readonly start: number;
};

export type Rule = {
  readonly chain: string;
  readonly conditions: readonly Condition[];
  readonly matches: readonly Match[];
  /** "" for a rule that names no target. */
  readonly verdict: "" | "-j" | "-g";
  readonly target: string;
  readonly targetOptions: readonly Word[];
};

/** Splits a line at blanks; undefined for what iptables-save never prints: a quote that is left open, or odd characters. */
export function words(line: string): Word[] | undefined {
  const found: Word[] = [];
  for (let start = 0; start < line.length; ) {
    if (line[start] === " ") {
      start += 1;
      continue;
    }
    const word = line[start] === '"' ? quotedWord(line, start) : plainWord(line, start);
    if (word === undefined) return undefined;
    found.push(word);
    start = word.end;
  }
  return found;
}

function plainWord(line: string, start: number): Word | undefined {
  const blank = line.indexOf(" ", start);
  const end = blank === -1 ? line.length : blank;
  const text = line.slice(start, end);
  return isPlain(text) ? { text, quoted: false, start, end } : undefined;
}

/** True for what needs no quotes: printable ASCII without quotes and backslashes. */
export function isPlain(text: string): boolean {
  return !/[^\x21-\x7e]|["'\\]/.test(text);
}

// xtables_save_string: a backslash takes the next character as it is.
function quotedWord(line: string, start: number): Word | undefined {
  let text = "";
  for (let at = start + 1; at < line.length; at++) {
    if (line[at] === '"') {
      const end = at + 1;
      const isWhole = end === line.length || line[end] === " ";
      return isWhole ? { text, quoted: true, start, end } : undefined;
    }
    if (line[at] === "\\") at += 1;
    text += line[at] ?? "";
  }
  return undefined;
}

/** Reads a rule; undefined where the line is not of the form. */
export function readRule(line: RuleText): Rule | undefined {
  const all = words(line);
  const [command, chain] = all ?? [];
  if (all === undefined || command?.text !== "-A" || chain === undefined || chain.quoted) {
    return undefined;
  }
  const reader: Reader = { all, at: 2 };
  const conditions = readConditions(reader);
  const matches = readMatches(reader);
  const verdict = readVerdict(reader);
  if (conditions === undefined || matches === undefined || verdict === undefined) return undefined;
  return reader.at === all.length
    ? { chain: chain.text, conditions, matches, ...verdict }
    : undefined;
}

type Reader = { readonly all: readonly Word[]; at: number };

const withValue = new Set(["-s", "-d", "-i", "-o", "-p"]);

function readConditions(reader: Reader): Condition[] | undefined {
  const found: Condition[] = [];
  for (let next = conditionAt(reader); next !== "none"; next = conditionAt(reader)) {
    const { option } = next;
    if (found.some((other) => other.option === option) || isOdd(next)) return undefined;
    found.push(next);
    reader.at += 1 + Number(next.inverted) + Number(option !== "-f");
  }
  return found;
}

function conditionAt(reader: Reader): Condition | "none" {
  const inverted = plainAt(reader, 0) === "!";
  const ahead = inverted ? 1 : 0;
  const option = plainAt(reader, ahead);
  if (option === "-f") return { option, value: "", inverted };
  return withValue.has(option) ? { option, value: plainAt(reader, ahead + 1), inverted } : "none";
}

function isOdd({ option, value }: Condition): boolean {
  return option !== "-f" && (value === "" || value.startsWith("-"));
}

function readMatches(reader: Reader): Match[] | undefined {
  const found: Match[] = [];
  while (plainAt(reader, 0) === "-m") {
    const name = plainAt(reader, 1);
    const start = reader.all[reader.at]?.start ?? 0;
    reader.at += 2;
    const options = readOptions(reader);
    if (name === "" || name.startsWith("-") || options === undefined) return undefined;
    found.push({ name, options, start });
  }
  return found;
}

function readVerdict(
  reader: Reader,
): Pick<Rule, "verdict" | "target" | "targetOptions"> | undefined {
  const verdict = plainAt(reader, 0);
  if (verdict !== "-j" && verdict !== "-g") return { verdict: "", target: "", targetOptions: [] };
  const target = plainAt(reader, 1);
  reader.at += 2;
  const targetOptions = readOptions(reader);
  if (target === "" || target.startsWith("-") || targetOptions === undefined) return undefined;
  return { verdict, target, targetOptions };
}

/** Options whose value is text of somebody's, which save prints without quotes when it is letters, digits, `-` and `_`. */
const withText = new Set([
  "--comment",
  "--string",
  "--log-prefix",
  "--nflog-prefix",
  "--ulog-prefix",
]);

// Up to the next `-m`, `-j` or `-g`: no option of a match or target begins with a single dash.
function readOptions(reader: Reader): Word[] | undefined {
  const found: Word[] = [];
  for (let word = reader.all[reader.at]; word !== undefined; word = reader.all[reader.at]) {
    if (!word.quoted && /^-(?!-)/.test(word.text)) {
      return ["-m", "-j", "-g"].includes(word.text) ? found : undefined;
    }
    found.push(word);
    reader.at += 1;
    if (word.quoted || !withText.has(word.text)) continue;
    const value = reader.all[reader.at];
    if (value === undefined) return undefined;
    found.push(value);
    reader.at += 1;
  }
  return found;
}

function plainAt({ all, at }: Reader, ahead: number): string {
  const word = all[at + ahead];
  return word === undefined || word.quoted ? "" : word.text;
}

/** The chain that a rule stands in; "" for what is no rule. */
export function chainOf(rule: RuleText): string {
  return /^-A ([^ ]+)/.exec(rule)?.[1] ?? "";
}

/** Where a rule sends a packet that it matches: the word after -j or -g; "" where it names none, or cannot be read. */
export function targetOf(rule: RuleText): string {
  return readRule(rule)?.target ?? "";
}

/**
 * A rule without its comments: what it does. Comments are for people; linkerd-init stamped the time into its own,
 * and its rules are as good as ours (linkerd2-proxy-init#4).
 */
export function content(rule: RuleText): RuleText {
  if (!rule.includes(" -m comment ")) return rule;
  const comments = (readRule(rule)?.matches ?? []).flatMap(commentSpan);
  let [rest, from] = ["", 0];
  for (const { start, end } of comments) {
    rest += rule.slice(from, start);
    from = end;
  }
  return rest + rule.slice(from);
}

// With the blank ahead of it.
function commentSpan(match: Match): Pick<Word, "start" | "end">[] {
  const comment = commentOf(match);
  return comment === undefined ? [] : [{ start: match.start - 1, end: comment.end }];
}

/** The comment that a match holds; undefined for another match. */
export function commentOf({ name, options }: Match): Word | undefined {
  const [option, value, ...others] = options;
  const isOne = name === "comment" && option?.text === "--comment" && others.length === 0;
  return isOne ? value : undefined;
}
