// Parses iptables-save's output into tables. A process that may write rules in a pod's netns writes part of this text, and the
// tool escapes no line break in it: a comment, or the name of an interface, may hold lines that look like ours. So a text
// that is not exactly of the form that the tool prints is not read on: the table is then unverifiable, never "as meant".
import { printable } from "../text/printable.ts";
import type { Tables } from "./own.ts";
import { hidingIn } from "./plainness.ts";
import { chainOf, isPlain, readRule } from "./rule.ts";
import { builtinChains, type RuleText, type Table, type TableName, tableNames } from "./table.ts";

/** The save's text is not what any iptables-save prints, and no pod's doing either. */
export class SaveSyntaxError extends Error {
  constructor(problem: string, line: string) {
    super(`iptables-save printed ${problem}: "${printable(line)}"`);
    this.name = "SaveSyntaxError";
  }
}

/** What is longer is not read: some 200,000 rules, which take the tools themselves seconds. */
export const longestSaveChars = 16 * 1024 * 1024;

/** The tables that are looked at, by name. */
export type SavedTables = Tables & {
  /** Other tables may be why nat is not shown, or may hold lines that look like one: a save of nat alone can tell more. */
  readonly isMixed: boolean;
};

/** One table of a save (see parseTables). */
export function parseSave(text: string, name: TableName = "nat"): Table {
  return parseTables(text)[name];
}

/**
 * The tables of a save. The text of others must be of the form too. No section of a table means that it does not exist yet.
 * Of an unverifiable table `chains` holds what stood ahead of the line that is wrong.
 * @throws SaveSyntaxError for a text that begins with something else, or ends within a table: the tool failed.
 */
export function parseTables(text: string): SavedTables {
  const reading: Reading = { found: new Map(), doubts: new Map(), isMixed: false };
  const isTooLong = text.length > longestSaveChars;
  const lines = isTooLong ? headOf(text) : text.replace(/\n$/, "").split("\n");
  const problem = takeLines(lines, reading);
  const doubt = isTooLong ? tooLong(text) : problem;
  if (doubt === undefined && reading.section !== undefined) {
    throw new SaveSyntaxError("no COMMIT for table", reading.section.table);
  }
  const table = (name: TableName): Table => {
    const chains = reading.found.get(name) ?? new Map<string, RuleText[]>();
    const unverifiable = reading.doubts.get(name) ?? doubt;
    return { chains, ...(unverifiable === undefined ? {} : { unverifiable }) };
  };
  const [nat, raw, mangle] = [table("nat"), table("raw"), table("mangle")];
  return { nat, raw, mangle, isMixed: reading.isMixed || doubt !== undefined };
}

/** Of a text that is too long, so much is read: the kernel's own chains come first, and our jumps stand at their head. */
const headChars = 64 * 1024;

function headOf(text: string): string[] {
  return text.slice(0, headChars).split("\n").slice(0, -1);
}

/** Takes lines in until one is wrong, and gives what is wrong with it. */
function takeLines(lines: readonly string[], reading: Reading): string | undefined {
  for (const line of lines) {
    const problem = takeLine(line, reading);
    if (problem === undefined) continue;
    if (reading.found.size === 0) throw new SaveSyntaxError(problem, line);
    return forged(problem, line);
  }
  return undefined;
}

function tooLong(text: string): string {
  return `its text is too long to be verified: ${text.length} characters, at most ${longestSaveChars}`;
}

function forged(problem: string, line: string): string {
  return `its text cannot be trusted, for rules can be written so that they look like others: ${problem}: ${printable(line, 200)}`;
}

/** A table of the text, between its `*name` and its COMMIT. */
type Section = {
  readonly table: string;
  readonly chains: Map<string, RuleText[]>;
  /** The chains whose rules may still come: they come chain by chain, in the order in which they were declared. */
  readonly order: string[];
  at: number;
  hasRules: boolean;
  /** No rule so far may hide others. */
  isTrusted: boolean;
};

type Reading = {
  /** The tables so far, also those that nobody asks for. */
  readonly found: Map<string, Map<string, RuleText[]>>;
  /** Why a table cannot be trusted, or is not shown whole. */
  readonly doubts: Map<string, string>;
  /** A rule of another table than nat may hold others. */
  isMixed: boolean;
  section?: Section | undefined;
};

/** Takes a line in; gives what is wrong with it. */
function takeLine(line: string, reading: Reading): string | undefined {
  const { section } = reading;
  if (section === undefined) return takeOutside(line, reading);
  if (line === "COMMIT") {
    reading.section = undefined;
    return undefined;
  }
  if (line.startsWith(":")) return declare(line, section, reading);
  return takeRule(line, section, reading);
}

function takeOutside(line: string, reading: Reading): string | undefined {
  if (line !== "" && !line.startsWith("#")) return openSection(line, reading);
  const table = hiddenBy(line);
  if (table !== "") addDoubt(reading.doubts, table, printable(line.slice(1).trim()));
  return undefined;
}

// The first one counts.
function addDoubt(doubts: Map<string, string>, table: string, doubt: string): void {
  if (!doubts.has(table)) doubts.set(table, doubt);
}

function openSection(line: string, reading: Reading): string | undefined {
  const table = /^\*([a-z]+)$/.exec(line)?.[1];
  if (table === undefined) return "a line outside of any table";
  if (reading.found.has(table)) return "a table that was there already";
  const chains = new Map<string, RuleText[]>();
  reading.found.set(table, chains);
  reading.section = { table, chains, order: [], at: 0, hasRules: false, isTrusted: true };
  return undefined;
}

/** What a jump to a chain of such a name could not be told from. */
const verdicts = new Set([
  "ACCEPT",
  "DROP",
  "QUEUE",
  "RETURN",
  "REDIRECT",
  "DNAT",
  "SNAT",
  "MASQUERADE",
  "NETMAP",
]);

function declare(line: string, section: Section, reading: Reading): string | undefined {
  const [, chain = "", policy = ""] = /^:([^ ]+) ([A-Z]+|-) \[\d+:\d+\]$/.exec(line) ?? [];
  if (chain === "" || !isPlain(chain)) return "a chain of an odd name";
  if (section.hasRules) return "a chain that is declared behind rules";
  if (section.chains.has(chain)) return "a chain that was declared already";
  if (isOddlyHeaded(section.table, chain, policy)) {
    if (section.table === "nat") return oddPolicy;
    addDoubt(reading.doubts, section.table, forged(oddPolicy, line));
  }
  if (verdicts.has(chain)) return "a chain that is named like a target";
  section.chains.set(chain, []);
  section.order.push(chain);
  return undefined;
}

const oddPolicy = "a policy where there is none, or none where there is";

// One of a builtin chain's name that has no policy is a plain one, which nothing leads into: nft makes such.
function isOddlyHeaded(table: string, chain: string, policy: string): boolean {
  const name = tableNames.find((one) => one === table);
  if (name === undefined) return false;
  return builtinChains[name].some((builtin) => builtin === chain) === (policy === "-");
}

function takeRule(line: string, section: Section, reading: Reading): string | undefined {
  const chain = chainOf(line);
  const rules = section.chains.get(chain);
  if (rules === undefined) return "an unknown line";
  while (section.order[section.at] !== chain) {
    section.at += 1;
    if (section.at >= section.order.length) return "a rule out of its chain's turn";
  }
  const rule = readRule(line);
  if (rule === undefined) return "a rule with odd words, or a quote that is left open";
  section.hasRules = true;
  const hiding = hidingIn(rule, section.chains);
  if (hiding !== undefined) addDoubt(reading.doubts, section.table, forged(hiding, line));
  reading.isMixed ||= hiding !== undefined && section.table !== "nat";
  section.isTrusted &&= hiding === undefined;
  if (section.isTrusted) rules.push(line);
  return undefined;
}

// Rules or base chains of nft's own stand in the table, and the tool exits 0 all the same. Of the first kind it prints
// nothing of the table, which without this line would look empty; of the second it prints the rest as if it were all:
//   # Table `nat' is incompatible, use 'nft' tool.
//   # Table `nat' contains incompatible base-chains, use 'nft' tool to list them.
function hiddenBy(remark: string): string {
  return /^# Table .([^ ]+). (?:is|contains) incompatible\b/.exec(remark)?.[1] ?? "";
}
