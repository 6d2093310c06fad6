// Transactions from any state to the ruleset, or to nothing of ours: that they lead there, and in which order tables come.
import { expect, test } from "vitest";
import { buildRuleset } from "../../src/mesh/linkerd/ruleset.ts";
import { compare } from "../../src/netfilter/compare.ts";
import { emptyTables, ownOf, replacing } from "../../src/netfilter/own.ts";
import type { Step } from "../../src/netfilter/plan.ts";
import { renderRestore } from "../../src/netfilter/restore.ts";
import { parseSave } from "../../src/netfilter/save.ts";
import type { Ruleset, Table, TableName } from "../../src/netfilter/table.ts";
import {
  fitting,
  freshTransaction,
  isFresh,
  removalOf,
  type Transaction,
  transactionTo,
} from "../../src/netfilter/transaction.ts";
import { emptyNat, type Nat, printNat, restoreNat, type Tool } from "../fake/nat.ts";
import { familyCases } from "../lab/case.ts";
import { meantBy } from "../lab/meant.ts";
import { rulesetWith, withNat } from "../lab/rulesets.ts";
import { bareZones, mangleCapture, natCapture, tablesOf } from "../lab/several-tables.ts";
import { foreignLines, linkerd, ownLines, stateNames, states } from "../lab/states.ts";
import { tableOf } from "../lab/trace.ts";

const tools: readonly Tool[] = [
  { family: "ipv4", backend: "nft" },
  { family: "ipv6", backend: "legacy" },
];
const ruleset = rulesetWith("ipv4", [
  { name: "IN", hook: "PREROUTING", jump: "-A PREROUTING -j IN", rules: ["-A IN -j RETURN"] },
  { name: "OUT", hook: "OUTPUT", jump: "-A OUTPUT -j OUT", rules: ["-A OUT -p tcp", "-A OUT"] },
]);
const own = ownOf([ruleset]);
const right = {
  PREROUTING: ["-A PREROUTING -j IN"],
  OUTPUT: ["-A OUTPUT -j OUT"],
  IN: ["-A IN -j RETURN"],
  OUT: ["-A OUT -p tcp", "-A OUT"],
};
const jump = "-A OUTPUT -j OUT";
const table = (entries: Record<string, string[]>): Table => ({
  chains: new Map(Object.entries(entries)),
});
const reset = (chain: string) => ({ do: "reset-chain", chain }) as const;
const remove = (rule: string) => ({ do: "delete", rule }) as const;
const inNat = (steps: readonly Step[]): Transaction => [{ table: "nat", steps }];
const bytes = (some: Transaction) => renderRestore(some).length;

test("fitting() leaves deletions for the next transaction, and with them the chains", () => {
  const found = table({ ...right, OUTPUT: Array.from({ length: 5 }, () => jump) });
  const removal = removalOf(own, withNat(found));
  expect(fitting(removal, bytes(removal), bytes)).toEqual(removal);
  const resets = [reset("IN"), reset("OUT")];
  const first = remove("-A PREROUTING -j IN");
  const five = Array.from({ length: 5 }, () => remove(jump));
  expect(fitting(removal, bytes(removal) - 1, bytes)).toEqual(inNat([...resets, first, ...five]));
  const three = inNat([...resets, first, remove(jump), remove(jump)]);
  expect(fitting(removal, bytes(three), bytes)).toEqual(three);
  expect(fitting(removal, bytes(three) + jump.length, bytes)).toEqual(three);
});

test("fitting() keeps what is to be there, whatever the number of jumps", () => {
  const found = table({ ...right, OUT: [], OUTPUT: [jump, jump, jump] });
  const repair = transactionTo(ruleset, withNat(found));
  const steps = repair.flatMap((commit) => commit.steps);
  const insert = { do: "insert", rule: jump } as const;
  const two = inNat([...steps.slice(0, 5), insert]);
  expect(fitting(repair, bytes(two), bytes)).toEqual(two);
});

function applied(transaction: Transaction, nat: Nat, tool: Tool): Nat {
  const restored = restoreNat(nat, renderRestore(transaction), tool);
  expect([restored.status, restored.stderr]).toEqual([0, ""]);
  return restored.nat;
}

const tableIn = (nat: Nat, tool: Tool): Table => parseSave(printNat(nat, tool));
const tablesIn = (nat: Nat, tool: Tool) => withNat(tableIn(nat, tool));

test.each(familyCases)(
  "freshTransaction() leads from nothing and removalOf() back: $title",
  (familyCase) => {
    const wanted = buildRuleset(familyCase.entry.intent, familyCase.family);
    for (const tool of tools) {
      const there = applied(freshTransaction(wanted), emptyNat, tool);
      expect(tableIn(there, tool).chains).toEqual(
        new Map([["INPUT", []], ["POSTROUTING", []], ...tableOf(wanted).chains]),
      );
      expect(transactionTo(wanted, tablesIn(there, tool))).toEqual([]);
      expect(compare(wanted, tablesIn(there, tool))).toEqual([]);
      const removal = removalOf(ownOf([wanted]), tablesIn(there, tool));
      expect(applied(removal, there, tool)).toEqual(emptyNat);
    }
  },
);

test.each(familyCases)(
  "freshTransaction() changes nothing when it is there already: $title",
  (familyCase) => {
    const wanted = buildRuleset(familyCase.entry.intent, familyCase.family);
    for (const tool of tools) {
      const there = applied(freshTransaction(wanted), emptyNat, tool);
      const again = restoreNat(there, renderRestore(freshTransaction(wanted)), tool);
      expect([again.status, again.nat]).toEqual([1, there]);
    }
  },
);

const wanted = buildRuleset(meantBy(linkerd).intent, "ipv4");

test.each(stateNames)(
  "transactionTo() leads to the ruleset, and touches nothing foreign, from: %s",
  (name) => {
    for (const tool of tools) {
      const found = restoreNat(emptyNat, states[name], tool).nat;
      const there = applied(transactionTo(wanted, tablesIn(found, tool)), found, tool);
      expect(compare(wanted, tablesIn(there, tool))).toEqual([]);
      expect(transactionTo(wanted, tablesIn(there, tool))).toEqual([]);
      expect(foreignLines(printNat(there, tool))).toEqual(foreignLines(printNat(found, tool)));
    }
  },
);

test.each(stateNames)("removalOf() takes all that is ours, and nothing else, from: %s", (name) => {
  for (const tool of tools) {
    const found = restoreNat(emptyNat, states[name], tool).nat;
    const left = applied(removalOf(ownOf([wanted]), tablesIn(found, tool)), found, tool);
    const referred = name === "a foreign chain that jumps to ours";
    expect(ownLines(printNat(left, tool))).toEqual(
      referred ? [":PROXY_INIT_REDIRECT - [0:0]"] : [],
    );
    expect(foreignLines(printNat(left, tool))).toEqual(foreignLines(printNat(found, tool)));
    expect(removalOf(ownOf([wanted]), tablesIn(left, tool))).toEqual([]);
  }
});

const [mangle, both] = [mangleCapture("ipv4"), natCapture("ipv4")];
const order = (transaction: Transaction) => transaction.map(({ table }) => table);
const there = (...rulesets: readonly Ruleset[]) => ({ ...emptyTables, ...tablesOf(rulesets) });

test("freshTransaction() goes through tables as packets do, each refusing to meet chains of ours", () => {
  const fresh = freshTransaction({ ...both, tables: both.tables.toReversed() });
  expect(order(fresh)).toEqual(["raw", "nat"]);
  expect(fresh.map(isFresh)).toEqual([true, true]);
  expect(transactionTo(both, emptyTables)).toEqual(fresh);
  const [bare] = freshTransaction(bareZones("ipv4"));
  expect(bare && isFresh(bare)).toBe(false);
});

test("transactionTo() writes a table that holds nothing of ours as a fresh one", () => {
  const [, nat] = freshTransaction(both);
  const { raw } = there(both);
  expect(transactionTo(both, { ...emptyTables, raw })).toEqual([nat]);
});

test("removalOf() takes away first what captures, then what it needs", () => {
  expect(order(removalOf(ownOf([both, mangle]), there(both, mangle)))).toEqual([
    "nat",
    "mangle",
    "raw",
  ]);
});

test("transactionTo() adds what captures before it takes away what did", () => {
  const toNat = transactionTo(replacing(both, [mangle]), there(mangle));
  expect(order(toNat)).toEqual(["raw", "nat", "mangle"]);
  const toMangle = transactionTo(replacing(mangle, [both]), there(both));
  expect(order(toMangle)).toEqual(["mangle", "nat", "raw"]);
});

/** A ruleset that captures in a chain of each of these tables. */
function capture(names: readonly TableName[], chain: string, port: number): Ruleset {
  const tables = names.map((name) => ({
    name,
    chains: [{ name: chain, rules: [`-A ${chain} -p tcp -j REDIRECT --to-ports ${port}`] }],
    placed: [{ hook: "OUTPUT", rule: `-A OUTPUT -p tcp -j ${chain}` } as const],
  }));
  return { family: "ipv4", tables, traffic: { protocols: ["tcp"], loopback: false } };
}

test("transactionTo() leaves stale rules of a table in place until a later table captures", () => {
  const [old, now] = [capture(["mangle"], "OLD", 1), capture(["mangle", "nat"], "NEW", 2)];
  const transaction = transactionTo(replacing(now, [old]), there(old));
  expect(
    transaction.map(({ table, steps }) => [table, steps.some(({ do: does }) => does === "delete")]),
  ).toEqual([
    ["mangle", false],
    ["nat", false],
    ["mangle", true],
  ]);
});

test("transactionTo() exchanges the rules of one table in one commit", () => {
  const [old, now] = [capture(["nat"], "OLD", 1), capture(["nat"], "NEW", 2)];
  expect(transactionTo(replacing(now, [old]), there(old))).toEqual(
    inNat([
      { do: "reset-chain", chain: "NEW" },
      { do: "append", rule: "-A NEW -p tcp -j REDIRECT --to-ports 2" },
      { do: "insert", rule: "-A OUTPUT -p tcp -j NEW" },
      { do: "reset-chain", chain: "OLD" },
      { do: "delete", rule: "-A OUTPUT -p tcp -j OLD" },
      { do: "delete-chain", chain: "OLD" },
    ]),
  );
});

test("transactionTo() writes over a chain in use when other tables have what is new", () => {
  const [old, now] = [capture(["mangle"], "C", 1), capture(["mangle", "nat"], "C", 2)];
  expect(order(transactionTo(replacing(now, [old]), there(old)))).toEqual(["nat", "mangle"]);
  const [before, after] = [capture(["nat"], "C", 1), capture(["mangle", "nat"], "C", 2)];
  expect(order(transactionTo(replacing(after, [before]), there(before)))).toEqual([
    "mangle",
    "nat",
  ]);
});
