// How far a load came before it was refused, by what the tools say (words of iptables 1.8.9, both backends).
import { expect, test } from "vitest";
import { committedIn, isOutdated, isUnclear } from "../../../src/netfilter/converge/outdated.ts";
import { freshTransaction } from "../../../src/netfilter/transaction.ts";
import { natCapture } from "../../lab/several-tables.ts";
import { outcomeOf } from "./outcome.ts";

const ruleset = natCapture("ipv4");
const transaction = freshTransaction(ruleset);
const [raw] = transaction;
/** The lines of the text: `*raw` 1 to COMMIT 7, `*nat` 8 to COMMIT 16. */
const refused = (stderr: string) => outcomeOf(transaction, { restoreStatus: 1, stderr });

const said: [stderr: string, loaded: "none" | "raw", isUnclear: boolean][] = [
  ["iptables-restore: line 2 failed", "none", false],
  ["iptables-restore: line 7 failed", "none", false],
  ["iptables-restore: line 9 failed", "raw", false],
  ["iptables-restore: line 16 failed", "raw", false],
  ["iptables-nft-restore: line 9 failed: Chain already exists.", "raw", false],
  ["line 12: RULE_APPEND failed (No such file or directory): rule in chain MADE_OUT", "raw", false],
  [
    "x v1.8.9 (legacy): Couldn't load target `A'\n\nError occurred at line: 13\nTry `x -h'",
    "raw",
    false,
  ],
  ["iptables-restore: line 99 failed", "none", false],
  ["Another app is currently holding the xtables lock.", "none", true],
  ["", "none", true],
];

test.each(said)("committedIn() and isUnclear() when a tool says %j", (stderr, loaded, unclear) => {
  const outcome = refused(stderr);
  expect(committedIn(transaction, outcome)).toEqual(loaded === "raw" ? [raw] : []);
  expect(isUnclear(transaction, outcome)).toBe(unclear);
});

test("committedIn() gives all of what was not refused, and a single commit is never unclear", () => {
  const outcome = outcomeOf(transaction, {});
  expect([committedIn(transaction, outcome), isUnclear(transaction, outcome)]).toEqual([
    transaction,
    false,
  ]);
  expect(isUnclear(transaction.slice(0, 1), refused(""))).toBe(false);
});

const outdated: [stderr: string, isOutdated: boolean][] = [
  ["iptables-restore: line 9 failed", true],
  ["iptables-restore: line 16 failed", false],
  ["iptables-restore: line 16 failed: No chain/target/match by that name.", false],
  ["iptables-nft-restore: line 2 failed: Chain already exists.", true],
  ["line 3: RULE_DELETE failed: Bad rule (does a matching rule exist in that chain?).", true],
  ["iptables v1.8.9 (nf_tables): Chain 'MADE_OUT' does not exist", true],
  ["iptables v1.8.9 (nf_tables): Chain 'OTHER' does not exist", false],
  ["line 12: RULE_APPEND failed (No such file or directory): rule in chain MADE_OUT", false],
];

test.each(outdated)("isOutdated() when a tool says %j", (stderr, expected) => {
  expect(isOutdated(ruleset, refused(stderr))).toBe(expected);
});

test("isOutdated() is not said of what was loaded", () => {
  expect(isOutdated(ruleset, outcomeOf(transaction, { stderr: outdated[0]?.[0] ?? "" }))).toBe(
    false,
  );
});
