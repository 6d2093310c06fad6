// How far a restore came before it was refused, and whether it was refused because somebody changed a table after our look.
import type { Outcome } from "../iptables/job.ts";
import { ownOf } from "../own.ts";
import type { Ruleset } from "../table.ts";
import type { Transaction } from "../transaction.ts";

/** The commits that were loaded: all of them, or those ahead of the table with the line that was refused. */
export function committedIn(transaction: Transaction, outcome: Outcome): Transaction {
  if (outcome.restoreStatus === 0) return transaction;
  const ends = linesOf(outcome).flatMap((text, i) => (text === "COMMIT" ? [i + 1] : []));
  const line = refusedLine(outcome);
  // A line that the text does not have tells nothing: what is held to be ours by mistake would be taken out.
  if (line === undefined || line > (ends.at(-1) ?? 0)) return [];
  return transaction.filter((_, i) => (ends[i] ?? line) < line);
}

/**
 * The text names what is no longer there, or makes what is there by now: somebody was at the table after our look. legacy gives
 * only the line; what the kernel has against a rule it blames on COMMIT.
 */
export function isOutdated(ruleset: Ruleset, outcome: Outcome): boolean {
  if (outcome.restoreStatus === 0) return false;
  const line = Number(failedLine.exec(outcome.stderr)?.[1] ?? Infinity);
  const text = linesOf(outcome)[line - 1];
  return (text !== undefined && text !== "COMMIT") || outdatedFor(ruleset).test(outcome.stderr);
}

/** What to do then. */
export const outdatedAdvice = "another program is changing the rules; try again";

const failedLine =
  /^\S*tables-restore: line (\d+) failed(?:: No chain\/target\/match by that name\.)?$/m;

function outdatedFor(ruleset: Ruleset): RegExp {
  const names = ownOf([ruleset]).flatMap(({ chains }) => chains);
  const words = names.map(
    (name) => `Couldn't load target .${name}'|Chain '${name}' does not exist`,
  );
  return new RegExp(["failed: (?:Chain already exists|Bad rule)", ...words].join("|"));
}

/** Of several commits it is not known which were loaded. */
export function isUnclear(transaction: Transaction, outcome: Outcome): boolean {
  return (
    transaction.length > 1 && outcome.restoreStatus !== 0 && refusedLine(outcome) === undefined
  );
}

// nft names the line of what the kernel refused when it commits: `line 5: RULE_APPEND failed`; a word that the tool itself
// does not know is one of `Error occurred at line: 5`.
function refusedLine({ stderr }: Outcome): number | undefined {
  const line = /\bline:? (\d+)(?: failed|: [A-Z_]+ failed|$)/m.exec(stderr)?.[1];
  return line === undefined ? undefined : Number(line);
}

function linesOf({ job }: Outcome): string[] {
  return job.restore.split("\n");
}
