// One family on its way to a ruleset of two tables, of which the second is refused at first: what is held to be of our making,
// and what is tried next. Of one table, progress.test.ts tells.
import { expect, test } from "vitest";
import {
  advance,
  begin,
  isAllCreated,
  isDone,
  type Progress,
} from "../../../src/netfilter/converge/progress.ts";
import { emptyTables, replacing } from "../../../src/netfilter/own.ts";
import { freshTransaction, transactionTo } from "../../../src/netfilter/transaction.ts";
import { bareZones, mangleCapture, natCapture, tablesOf } from "../../lab/several-tables.ts";
import { outcomeOf, savedOf } from "./outcome.ts";

const ruleset = natCapture("ipv4");
const [rawCommit, natCommit] = freshTransaction(ruleset);
const all = tablesOf([ruleset]);
const rawAlone = { ...emptyTables, raw: all.raw ?? emptyTables.raw };
const refusal = {
  restoreStatus: 1,
  stderr: "line 12: RULE_APPEND failed (No such file or directory)",
};

function madeBy({ created, isRewritten, doubtful }: Progress) {
  return { created: [...created], isRewritten, doubtful };
}

function tried(progress: Progress, more: Parameters<typeof outcomeOf>[1]): Progress {
  advance(progress, outcomeOf(progress.transaction, more));
  return progress;
}

test("begin() loads at once what refuses to meet anything of ours, and looks first at the rest", () => {
  expect(begin(ruleset).transaction).toEqual([rawCommit, natCommit]);
  expect(begin(bareZones("ipv4")).transaction).toEqual([]);
  expect(begin(replacing(ruleset, [mangleCapture("ipv4")])).transaction).toEqual([]);
  expect(isDone(begin(bareZones("ipv4")))).toBe(false);
});

test("a second table that was refused is tried anew by itself, and all is known to be of our making", () => {
  const progress = tried(begin(ruleset), { ...refusal, saved: savedOf(rawAlone) });
  expect(madeBy(progress)).toEqual({ created: ["raw"], isRewritten: false, doubtful: false });
  expect(progress.failure?.said).toBe(refusal.stderr);
  expect(progress.transaction).toEqual([natCommit]);
  tried(progress, { saved: savedOf(all) });
  expect(madeBy(progress)).toEqual({
    created: ["raw", "nat"],
    isRewritten: false,
    doubtful: false,
  });
  expect([isDone(progress), isAllCreated(progress)]).toEqual([true, true]);
});

test("a second table that had something of ours is written over, and told so", () => {
  const MADE_IN = ["-A MADE_IN -p tcp -j REDIRECT --to-ports 1"];
  const found = { ...rawAlone, nat: { chains: new Map([["MADE_IN", MADE_IN]]) } };
  const said = {
    restoreStatus: 1,
    stderr: "iptables-nft-restore: line 9 failed: Chain already exists.",
  };
  const progress = tried(begin(ruleset), { ...said, saved: savedOf(found) });
  expect(progress.failure).toBe(undefined);
  expect(progress.transaction).toEqual(transactionTo(ruleset, found));
  tried(progress, { saved: savedOf(all) });
  expect(madeBy(progress)).toEqual({ created: ["raw"], isRewritten: true, doubtful: false });
  expect([isDone(progress), isAllCreated(progress)]).toEqual([true, false]);
});

test("a refusal that names no line leaves it open which tables were loaded", () => {
  const progress = tried(begin(ruleset), {
    restoreStatus: 1,
    stderr: "Killed",
    saved: savedOf(rawAlone),
  });
  expect(madeBy(progress)).toEqual({ created: [], isRewritten: false, doubtful: true });
});

test("stale tables are part of what is brought about", () => {
  const old = mangleCapture("ipv4");
  const before = tablesOf([old]);
  const progress = tried(begin(replacing(ruleset, [old])), { saved: savedOf(before) });
  expect(progress.transaction.map(({ table }) => table)).toEqual(["raw", "nat", "mangle"]);
  tried(progress, { saved: savedOf(all) });
  expect(madeBy(progress)).toEqual({ created: ["raw", "nat"], isRewritten: true, doubtful: false });
  expect([isDone(progress), isAllCreated(progress)]).toEqual([true, false]);
});
