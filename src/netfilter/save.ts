// Parses one table out of iptables-save's output. Strict: a line that it does not know is an error, never dropped,
// because a dropped line would turn "cannot read" into "is not there".
import { chainOf } from "./rule.ts";
import type { RuleText, Table, TableName } from "./table.ts";

/** The save's text is not what any iptables-save prints. `line` is the first line that does not fit. */
export class SaveSyntaxError extends Error {
  constructor(problem: string, line: string) {
    super(`iptables-save printed ${problem}: ${JSON.stringify(line)}`);
    this.name = "SaveSyntaxError";
  }
}

/**
 * One table of a save. Other tables are read over. No section of it means that the table does not exist yet.
 * @throws SaveSyntaxError for an unknown line, a rule outside a declared chain, or a missing COMMIT.
 */
export function parseSave(text: string, name: TableName = "nat"): Table {
  const chains = new Map<string, RuleText[]>();
  const state = { name, table: "", unverifiable: "" };
  for (const line of text.split("\n")) {
    if (line.startsWith("#")) state.unverifiable ||= unverifiable(line, name);
    else if (line !== "") takeLine(line, state, chains);
  }
  if (state.table !== "") throw new SaveSyntaxError("no COMMIT for table", state.table);
  return {
    chains,
    ...(state.unverifiable === "" ? {} : { unverifiable: state.unverifiable }),
  };
}

type State = { readonly name: TableName; table: string };

function takeLine(line: string, state: State, chains: Map<string, RuleText[]>): void {
  if (line.startsWith("*")) {
    state.table = line.slice(1).trim();
    return;
  }
  if (state.table === "") throw new SaveSyntaxError("a line outside of any table", line);
  if (line === "COMMIT") {
    state.table = "";
    return;
  }
  if (state.table !== state.name) return;
  const declared = /^:(\S+) \S+ \[\d+:\d+\]$/.exec(line)?.[1];
  if (declared !== undefined) chains.set(declared, []);
  else takeRule(line, chains);
}

function takeRule(line: string, chains: Map<string, RuleText[]>): void {
  const rules = chains.get(chainOf(line));
  if (rules === undefined) throw new SaveSyntaxError("an unknown line", line);
  rules.push(line);
}

// Rules or base chains of nft's own stand in the table, and the tool exits 0 all the same. Of the first kind it prints
// nothing of the table, which without this line would look empty; of the second it prints the rest as if it were all:
//   # Table `nat' is incompatible, use 'nft' tool.
//   # Table `nat' contains incompatible base-chains, use 'nft' tool to list them.
function unverifiable(comment: string, name: TableName): string {
  const table = /^# Table .(\S+). (?:is|contains) incompatible\b/.exec(comment)?.[1];
  return table === name ? comment.slice(1).trim() : "";
}
