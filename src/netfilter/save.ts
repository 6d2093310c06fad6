// Parses iptables-save's output into the nat table. Strict: a line that it does not know is an error, never dropped,
// because a dropped line would turn "cannot read" into "is not there".
import { chainOf } from "./rule.ts";
import type { RuleText, Table } from "./table.ts";

/** The save's text is not what any iptables-save prints. `line` is the first line that does not fit. */
export class SaveSyntaxError extends Error {
  constructor(problem: string, line: string) {
    super(`iptables-save printed ${problem}: ${JSON.stringify(line)}`);
    this.name = "SaveSyntaxError";
  }
}

/**
 * The nat table of a save. Other tables are read over. No nat section means that the table does not exist yet.
 * @throws SaveSyntaxError for an unknown line, a rule outside a declared chain, or a missing COMMIT.
 */
export function parseSave(text: string): Table {
  const nat = new Map<string, RuleText[]>();
  const state = { table: "", unverifiable: "" };
  for (const line of text.split("\n")) {
    if (line.startsWith("#")) state.unverifiable ||= unverifiable(line);
    else if (line !== "") takeLine(line, state, nat);
  }
  if (state.table !== "") throw new SaveSyntaxError("no COMMIT for table", state.table);
  return {
    chains: nat,
    ...(state.unverifiable === "" ? {} : { unverifiable: state.unverifiable }),
  };
}

function takeLine(line: string, state: { table: string }, nat: Map<string, RuleText[]>): void {
  if (line.startsWith("*")) {
    state.table = line.slice(1).trim();
    return;
  }
  if (state.table === "") throw new SaveSyntaxError("a line outside of any table", line);
  if (line === "COMMIT") {
    state.table = "";
    return;
  }
  if (state.table !== "nat") return;
  const declared = /^:(\S+) \S+ \[\d+:\d+\]$/.exec(line)?.[1];
  if (declared !== undefined) nat.set(declared, []);
  else takeRule(line, nat);
}

function takeRule(line: string, nat: Map<string, RuleText[]>): void {
  const rules = nat.get(chainOf(line));
  if (rules === undefined) throw new SaveSyntaxError("an unknown line", line);
  rules.push(line);
}

// `# Table `nat' is incompatible, use 'nft' tool.`: native nft rules stand in the table. The tool exits 0 and prints
// nothing else of it, so without this line it would look like an empty table.
function unverifiable(comment: string): string {
  return /^# Table .nat. is incompatible/.test(comment) ? comment.slice(1).trim() : "";
}
