// Transactions from any state to the ruleset, or to nothing of ours: what they say, and that they lead there.
import { expect, test } from "vitest";
import { parseConf } from "../../src/conf/conf.ts";
import { ownChains } from "../../src/mesh/linkerd/names.ts";
import { buildRuleset } from "../../src/mesh/linkerd/ruleset.ts";
import { intentOfConf } from "../../src/mesh/linkerd/values.ts";
import { compare } from "../../src/netfilter/compare.ts";
import {
  fitting,
  holdersOf,
  jumpsInto,
  plan,
  planFresh,
  planRemoval,
  type Transaction,
} from "../../src/netfilter/plan.ts";
import { renderRestore } from "../../src/netfilter/restore.ts";
import { parseSave } from "../../src/netfilter/save.ts";
import { emptyTable, type Ruleset, type Table } from "../../src/netfilter/table.ts";
import { emptyNat, type Nat, printNat, restoreNat, type Tool } from "../fake/nat.ts";
import { familyCases } from "../lab/case.ts";
import { foreignLines, linkerd, ownLines, stateNames, states } from "../lab/states.ts";
import { tableOf } from "../lab/trace.ts";

const tools: readonly Tool[] = [
  { family: "ipv4", backend: "nft" },
  { family: "ipv6", backend: "legacy" },
];
const ruleset: Ruleset = {
  family: "ipv4",
  chains: [
    { name: "IN", hook: "PREROUTING", jump: "-A PREROUTING -j IN", rules: ["-A IN -j RETURN"] },
    { name: "OUT", hook: "OUTPUT", jump: "-A OUTPUT -j OUT", rules: ["-A OUT -p tcp", "-A OUT"] },
  ],
};

const table = (entries: Record<string, string[]>): Table => ({
  chains: new Map(Object.entries(entries)),
});
const right = {
  PREROUTING: ["-A PREROUTING -j IN"],
  OUTPUT: ["-A OUTPUT -j OUT"],
  IN: ["-A IN -j RETURN"],
  OUT: ["-A OUT -p tcp", "-A OUT"],
};

test("planFresh() makes chains so that it fails where they are, then rules, then jumps", () => {
  expect(planFresh(ruleset)).toEqual([
    { do: "create-chain", chain: "IN" },
    { do: "create-chain", chain: "OUT" },
    { do: "append", rule: "-A IN -j RETURN" },
    { do: "append", rule: "-A OUT -p tcp" },
    { do: "append", rule: "-A OUT" },
    { do: "insert", rule: "-A PREROUTING -j IN" },
    { do: "insert", rule: "-A OUTPUT -j OUT" },
  ]);
});

const refill: Transaction = [
  { do: "reset-chain", chain: "OUT" },
  { do: "append", rule: "-A OUT -p tcp" },
  { do: "append", rule: "-A OUT" },
];
const remove = (rule: string) => ({ do: "delete", rule }) as const;
const jump = "-A OUTPUT -j OUT";
const insert = { do: "insert", rule: jump } as const;
const [odd, goto, stray] = ["-A OUTPUT -p tcp -j OUT", "-A OUTPUT -g OUT", "-A INPUT -j OUT"];
const unspelt = '-A OUTPUT -m string --string "x" --algo bm -j OUT';
const taker = "-A OUTPUT -j ACCEPT";
const remark = "-A OUT -p tcp -m comment --comment x";

const plans: [when: string, found: Record<string, string[]>, steps: Transaction][] = [
  ["all is there", {}, []],
  ["a rule is missing", { OUT: ["-A OUT"] }, refill],
  ["a rule is too many", { OUT: [...right.OUT, "-A OUT"] }, refill],
  ["rules are reordered", { OUT: right.OUT.toReversed() }, refill],
  ["a chain is empty", { OUT: [] }, refill],
  ["a comment differs", { OUT: [remark, "-A OUT"] }, refill],
  ["a jump is missing", { OUTPUT: [] }, [insert]],
  ["a jump is doubled", { OUTPUT: [jump, jump] }, [remove(jump), remove(jump), insert]],
  ["a jump is odd", { OUTPUT: [odd] }, [remove(odd), insert]],
  ["an odd jump is beside ours", { OUTPUT: [odd, jump] }, [remove(odd), remove(jump), insert]],
  ["a jump that is not ours to spell comes after", { OUTPUT: [jump, unspelt] }, []],
  ["a jump that is not ours to spell is alone", { OUTPUT: [unspelt] }, [insert]],
  ["a jump is a goto", { OUTPUT: [goto] }, [remove(goto), insert]],
  ["another hook jumps too", { INPUT: [stray] }, [remove(stray), remove(jump), insert]],
  ["a foreign rule takes the traffic", { OUTPUT: [taker, jump] }, [remove(jump), insert]],
  ["a foreign rule is harmless", { OUTPUT: ["-A OUTPUT -p udp -j ACCEPT", jump] }, []],
  ["a foreign rule comes after", { OUTPUT: [jump, taker] }, []],
  ["a foreign chain jumps to ours", { X: ["-A X -j OUT"] }, []],
];

test.each(plans)("plan() takes the steps that lead there when %s", (_, found, steps) => {
  expect(plan(ruleset, table({ ...right, ...found }))).toEqual(steps);
});

test("plan() makes everything, in any state of the chain, when nothing is there", () => {
  expect(plan(ruleset, emptyTable)).toEqual([
    { do: "reset-chain", chain: "IN" },
    { do: "reset-chain", chain: "OUT" },
    { do: "append", rule: "-A IN -j RETURN" },
    { do: "append", rule: "-A OUT -p tcp" },
    { do: "append", rule: "-A OUT" },
    { do: "insert", rule: "-A PREROUTING -j IN" },
    { do: "insert", rule: "-A OUTPUT -j OUT" },
  ]);
});

const reset = (chain: string) => ({ do: "reset-chain", chain }) as const;
const deletion = (chain: string) => ({ do: "delete-chain", chain }) as const;
const removals: [when: string, found: Record<string, string[]>, steps: Transaction][] = [
  ["nothing is there", {}, []],
  ["only foreign rules are there", { OUTPUT: [taker], X: [] }, []],
  ["one chain is there", { OUT: right.OUT }, [reset("OUT"), deletion("OUT")]],
  [
    "all is there, and doubled",
    { ...right, OUTPUT: [jump, taker, jump] },
    [
      ...[reset("IN"), reset("OUT")],
      ...[remove("-A PREROUTING -j IN"), remove(jump), remove(jump)],
      ...[deletion("IN"), deletion("OUT")],
    ],
  ],
  [
    "a foreign chain jumps to ours: it stays, empty",
    { OUT: right.OUT, OUTPUT: [jump], X: ["-A X -j OUT"] },
    [reset("OUT"), remove(jump)],
  ],
  [
    "a jump that is not ours to spell leads into ours: it stays, empty",
    { OUT: right.OUT, OUTPUT: [jump, unspelt] },
    [reset("OUT"), remove(jump)],
  ],
  ["nothing is left but an empty chain that is held", { OUT: [], X: ["-A X -j OUT"] }, []],
  [
    "own chains jump to each other",
    { IN: ["-A IN -j OUT"], OUT: [] },
    [reset("IN"), reset("OUT"), deletion("IN"), deletion("OUT")],
  ],
];

test.each(removals)("planRemoval() takes the steps that lead away when %s", (_, found, steps) => {
  expect(planRemoval(["IN", "OUT"], table(found))).toEqual(steps);
});

test("jumpsInto() gives jumps and gotos of all builtin chains, and of no other", () => {
  const others = ["-A OUTPUT -j IN", "-A OUTPUT -j ACCEPT"];
  const found = { INPUT: [stray], OUTPUT: [goto, ...others, jump], X: ["-A X -j OUT"] };
  expect(jumpsInto("OUT", table(found))).toEqual([stray, goto, jump]);
});

const held: [when: string, found: Record<string, string[]>, rules: string[]][] = [
  ["nothing leads into it", { OUTPUT: [taker], X: ["-A X -j IN"] }, []],
  ["jumps of ours do", { OUTPUT: [jump, odd, goto], INPUT: [stray] }, []],
  [
    "others do",
    { OUTPUT: [jump, unspelt], X: ["-A X -g OUT", "-A X -j A"] },
    [unspelt, "-A X -g OUT"],
  ],
];

test.each(held)("holdersOf() gives what keeps a chain from going when %s", (_, found, rules) => {
  expect(holdersOf("OUT", table(found), ["IN", "OUT"])).toEqual(rules);
});

test("fitting() leaves deletions for the next transaction, and with them the chains", () => {
  const found = table({ ...right, OUTPUT: Array.from({ length: 5 }, () => jump) });
  const removal = planRemoval(["IN", "OUT"], found);
  const bytes = (some: Transaction) => renderRestore(some).length;
  expect(fitting(removal, bytes(removal))).toEqual(removal);
  const resets = [reset("IN"), reset("OUT")];
  const first = remove("-A PREROUTING -j IN");
  expect(fitting(removal, bytes(removal) - 1)).toEqual([
    ...resets,
    first,
    ...Array.from({ length: 5 }, () => remove(jump)),
  ]);
  const three = [...resets, first, remove(jump), remove(jump)];
  expect(fitting(removal, bytes(three))).toEqual(three);
  expect(fitting(removal, bytes(three) + jump.length)).toEqual(three);
});

test("fitting() keeps what is to be there, whatever the number of jumps", () => {
  const repair = plan(ruleset, table({ ...right, OUT: [], OUTPUT: [jump, jump, jump] }));
  const [rules, jumps] = [repair.slice(0, 3), repair.slice(3)];
  const two = [...rules, jumps[0], jumps[1], insert].filter((step) => step !== undefined);
  expect(fitting(repair, renderRestore(two).length)).toEqual(two);
});

function applied(transaction: Transaction, nat: Nat, tool: Tool): Nat {
  const restored = restoreNat(nat, renderRestore(transaction), tool);
  expect([restored.status, restored.stderr]).toEqual([0, ""]);
  return restored.nat;
}

const tableIn = (nat: Nat, tool: Tool): Table => parseSave(printNat(nat, tool));

test.each(familyCases)(
  "planFresh() leads from nothing and planRemoval() back: $title",
  (familyCase) => {
    const wanted = buildRuleset(familyCase.entry.intent, familyCase.family);
    for (const tool of tools) {
      const there = applied(planFresh(wanted), emptyNat, tool);
      expect(tableIn(there, tool).chains).toEqual(
        new Map([["INPUT", []], ["POSTROUTING", []], ...tableOf(wanted).chains]),
      );
      expect(plan(wanted, tableIn(there, tool))).toEqual([]);
      expect(compare(wanted, tableIn(there, tool))).toEqual([]);
      const removal = planRemoval(ownChains, tableIn(there, tool));
      expect(applied(removal, there, tool)).toEqual(emptyNat);
    }
  },
);

test.each(familyCases)(
  "planFresh() changes nothing when it is there already: $title",
  (familyCase) => {
    const wanted = buildRuleset(familyCase.entry.intent, familyCase.family);
    for (const tool of tools) {
      const there = applied(planFresh(wanted), emptyNat, tool);
      const again = restoreNat(there, renderRestore(planFresh(wanted)), tool);
      expect([again.status, again.nat]).toEqual([1, there]);
    }
  },
);

const wanted = buildRuleset(intentOfConf(parseConf({ linkerd }).linkerd, ["ipv4"]), "ipv4");

test.each(stateNames)(
  "plan() leads to the ruleset, and touches nothing foreign, from: %s",
  (name) => {
    for (const tool of tools) {
      const found = restoreNat(emptyNat, states[name], tool).nat;
      const there = applied(plan(wanted, tableIn(found, tool)), found, tool);
      expect(compare(wanted, tableIn(there, tool))).toEqual([]);
      expect(plan(wanted, tableIn(there, tool))).toEqual([]);
      expect(foreignLines(printNat(there, tool))).toEqual(foreignLines(printNat(found, tool)));
    }
  },
);

test.each(stateNames)(
  "planRemoval() takes all that is ours, and nothing else, from: %s",
  (name) => {
    for (const tool of tools) {
      const found = restoreNat(emptyNat, states[name], tool).nat;
      const left = applied(planRemoval(ownChains, tableIn(found, tool)), found, tool);
      const referred = name === "a foreign chain that jumps to ours";
      expect(ownLines(printNat(left, tool))).toEqual(
        referred ? [":PROXY_INIT_REDIRECT - [0:0]"] : [],
      );
      expect(foreignLines(printNat(left, tool))).toEqual(foreignLines(printNat(found, tool)));
      expect(planRemoval(ownChains, tableIn(left, tool))).toEqual([]);
    }
  },
);
