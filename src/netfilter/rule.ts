// Reads a rule as iptables-save prints it: `-A CHAIN [conditions] [-m match options]... [-j|-g TARGET options]`. A process that may
// write rules in a pod's netns chooses the values in it, so a word is what its place makes it, never what it looks like:
// of `-m string --string "-p"` the `-p` is a value. Linear in the line; what is not of this form is not read at all.
// Saves are long, and this program is interpreted: searching is left to the engine's own functions.
import type { RuleText } from "./table.ts";

/** What stands ahead of the matches: `! -d 10.0.0.0/8`. */
export type Condition = {
  readonly option: string;
  readonly value: string;
  readonly inverted: boolean;
};

/** `-m NAME OPTIONS`, and which word of the line its `-m` is; words in quotes have them still. */
export type Match = {
  readonly name: string;
  readonly options: readonly string[];
  readonly at: number;
};

export type Rule = {
  readonly chain: string;
  readonly conditions: readonly Condition[];
  readonly matches: readonly Match[];
  /** "" for a rule that names no target. */
  readonly verdict: "" | "-j" | "-g";
  readonly target: string;
  readonly targetOptions: readonly string[];
};

/**
 * Splits a line at blanks; a word in quotes keeps them, and is a value even if it looks like an option. Undefined for what iptables-save
 * never prints: a quote that is left open, or odd characters.
 */
export function words(line: string): string[] | undefined {
  const found: string[] = [];
  let at = 0;
  for (let quote = line.indexOf('"'); quote !== -1; quote = line.indexOf('"', at)) {
    const plain = plainWords(line.slice(at, quote));
    const close = closingQuote(line, quote + 1);
    if (plain === undefined || close === -1) return undefined;
    // A quote neither opens nor closes within a word.
    if (!isBlank(line, quote - 1) || !isBlank(line, close + 1)) return undefined;
    found.push(...plain, line.slice(quote, close + 1));
    at = close + 1;
  }
  const rest = plainWords(line.slice(at));
  return rest === undefined ? undefined : found.concat(rest);
}

function isBlank(line: string, at: number): boolean {
  return at < 0 || at >= line.length || line[at] === " ";
}

function plainWords(part: string): string[] | undefined {
  if (!isPlain(part)) return undefined;
  const trimmed = part.trim();
  if (trimmed === "") return [];
  const found = trimmed.split(" ");
  return trimmed.includes("  ") ? found.filter((word) => word !== "") : found;
}

const odd = /[^ -~]|["'\\]/;

/** True for what needs no quotes: printable ASCII without quotes and backslashes. */
export function isPlain(text: string): boolean {
  return !odd.test(text);
}

// xtables_save_string: a backslash takes the next character as it is.
function closingQuote(line: string, from: number): number {
  const quote = line.indexOf('"', from);
  const backslash = line.indexOf("\\", from);
  if (backslash === -1 || backslash > quote) return quote;
  const rest = /(?:[^"\\]|\\.)*/sy;
  rest.lastIndex = backslash;
  rest.test(line);
  return line[rest.lastIndex] === '"' ? rest.lastIndex : -1;
}

/** What a word says, without its quotes. */
export function unquoted(word: string): string {
  if (!word.startsWith('"')) return word;
  const inner = word.slice(1, -1);
  return inner.includes("\\") ? inner.replaceAll(/\\(.)/gs, "$1") : inner;
}

/** Reads a rule; undefined where the line is not of the form. */
export function readRule(line: RuleText): Rule | undefined {
  const all = words(line);
  if (all === undefined || all[0] !== "-A") return undefined;
  const reader: Reader = { all, at: 2, isOdd: false };
  const [, chain = ""] = all;
  const conditions = readConditions(reader);
  const matches = readMatches(reader);
  const { verdict, target, targetOptions } = readVerdict(reader);
  const isRead = reader.at === all.length && !reader.isOdd && isName(chain);
  return isRead ? { chain, conditions, matches, verdict, target, targetOptions } : undefined;
}

/** `isOdd`: something was not of the form. */
type Reader = { readonly all: readonly string[]; at: number; isOdd: boolean };

function isName(word = "-"): boolean {
  return word[0] !== "-" && word[0] !== '"';
}

const withValue = new Set(["-s", "-d", "-i", "-o", "-p"]);

function readConditions(reader: Reader): Condition[] {
  const found: Condition[] = [];
  for (let next = takeCondition(reader); next !== undefined; next = takeCondition(reader)) {
    const { option } = next;
    reader.isOdd ||= found.some((other) => other.option === option);
    found.push(next);
  }
  return found;
}

function takeCondition(reader: Reader): Condition | undefined {
  const { all } = reader;
  const inverted = all[reader.at] === "!";
  const at = inverted ? reader.at + 1 : reader.at;
  const option = all[at] ?? "";
  const takesValue = withValue.has(option);
  if (!takesValue && option !== "-f") return undefined;
  const value = takesValue ? (all[at + 1] ?? "-") : "";
  reader.isOdd ||= takesValue && !isName(value);
  reader.at = takesValue ? at + 2 : at + 1;
  return { option, value, inverted };
}

function readMatches(reader: Reader): Match[] {
  const found: Match[] = [];
  while (reader.all[reader.at] === "-m") {
    const { at } = reader;
    const name = reader.all[at + 1];
    reader.isOdd ||= !isName(name);
    reader.at += 2;
    found.push({ name: name ?? "", options: readOptions(reader), at });
  }
  return found;
}

function readVerdict(reader: Reader): Pick<Rule, "verdict" | "target" | "targetOptions"> {
  const verdict = reader.all[reader.at];
  if (verdict !== "-j" && verdict !== "-g") return { verdict: "", target: "", targetOptions: [] };
  const target = reader.all[reader.at + 1];
  reader.isOdd ||= !isName(target);
  reader.at += 2;
  return { verdict, target: target ?? "", targetOptions: readOptions(reader) };
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
function readOptions(reader: Reader): string[] {
  const { all, at } = reader;
  let end = at;
  for (let word = all[end]; word !== undefined && !isShort(word); word = all[end]) {
    end += withText.has(word) ? 2 : 1;
  }
  reader.at = end;
  return all.slice(at, end);
}

function isShort(word: string): boolean {
  return word[0] === "-" && word[1] !== "-";
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
  const matches = rule.includes(" -m comment ") ? (readRule(rule)?.matches ?? []) : [];
  const comments = matches.filter((match) => commentOf(match) !== undefined);
  if (comments.length === 0) return rule;
  // Each is four words: -m comment --comment TEXT.
  const left = comments.reduceRight((all, { at }) => all.toSpliced(at, 4), words(rule) ?? []);
  return left.join(" ");
}

/** What the comment says that a match holds; undefined for another match. */
export function commentOf({ name, options }: Match): string | undefined {
  const [option, value, ...others] = options;
  const isOne = name === "comment" && option === "--comment" && others.length === 0;
  return isOne && value !== undefined ? unquoted(value) : undefined;
}
