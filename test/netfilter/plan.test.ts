// The steps that lead a table from any state to what it should hold, or to nothing of ours.
import { expect, test } from "vitest";
import { ownIn } from "../../src/netfilter/own.ts";
import {
  holdersOf,
  jumpsInto,
  plan,
  planFresh,
  planRemoval,
  planStale,
  type Step,
} from "../../src/netfilter/plan.ts";
import { emptyTable, type OwnTable, type Table, type Traffic } from "../../src/netfilter/table.ts";
import { natWith, tcp } from "../lab/rulesets.ts";

const own = natWith([
  { name: "IN", hook: "PREROUTING", jump: "-A PREROUTING -j IN", rules: ["-A IN -j RETURN"] },
  { name: "OUT", hook: "OUTPUT", jump: "-A OUTPUT -j OUT", rules: ["-A OUT -p tcp", "-A OUT"] },
]);
const names = ownIn(own);

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
  expect(planFresh(own)).toEqual([
    { do: "create-chain", chain: "IN" },
    { do: "create-chain", chain: "OUT" },
    { do: "append", rule: "-A IN -j RETURN" },
    { do: "append", rule: "-A OUT -p tcp" },
    { do: "append", rule: "-A OUT" },
    { do: "insert", rule: "-A PREROUTING -j IN" },
    { do: "insert", rule: "-A OUTPUT -j OUT" },
  ]);
});

const refill: readonly Step[] = [
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

const plans: [when: string, found: Record<string, string[]>, steps: readonly Step[]][] = [
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
  ["another hook jumps too", { INPUT: [stray] }, [remove(stray)]],
  ["a foreign rule takes the traffic", { OUTPUT: [taker, jump] }, [remove(jump), insert]],
  ["a foreign rule is harmless", { OUTPUT: ["-A OUTPUT -p udp -j ACCEPT", jump] }, []],
  ["a foreign rule comes after", { OUTPUT: [jump, taker] }, []],
  ["a foreign chain jumps to ours", { X: ["-A X -j OUT"] }, []],
];

test.each(plans)("plan() takes the steps that lead there when %s", (_, found, steps) => {
  expect(plan(own, table({ ...right, ...found }), tcp)).toEqual(steps);
});

test("plan() makes everything, in any state of the chain, when nothing is there", () => {
  expect(plan(own, emptyTable, tcp)).toEqual([
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
const removals: [when: string, found: Record<string, string[]>, steps: readonly Step[]][] = [
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
  expect(planRemoval(names, table(found))).toEqual(steps);
});

test("jumpsInto() gives jumps and gotos of all builtin chains, and of no other", () => {
  const others = ["-A OUTPUT -j IN", "-A OUTPUT -j ACCEPT"];
  const found = { INPUT: [stray], OUTPUT: [goto, ...others, jump], X: ["-A X -j OUT"] };
  expect(jumpsInto("OUT", table(found), "nat")).toEqual([stray, goto, jump]);
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
  expect(holdersOf("OUT", table(found), names)).toEqual(rules);
});

const conntrack = "-A PREROUTING -p tcp -m socket --transparent -j BOTH";
const [first, second] = ["-A OUTPUT -p tcp -j BOTH", "-A OUTPUT -p udp -j BOTH"];
const acting = "-A OUTPUT -p udp -m udp --dport 53 -j CT --zone 1";
const several: OwnTable = {
  name: "mangle",
  chains: [
    { name: "BOTH", rules: ["-A BOTH -j MARK --set-xmark 0x1/0xffffffff"] },
    { name: "UNLED", rules: [] },
  ],
  placed: [
    { hook: "PREROUTING", rule: conntrack },
    { hook: "OUTPUT", rule: first },
    { hook: "OUTPUT", rule: second },
    { hook: "OUTPUT", rule: acting },
  ],
};
const allThere = {
  PREROUTING: [conntrack],
  OUTPUT: [first, second, acting],
  BOTH: ["-A BOTH -j MARK --set-xmark 0x1/0xffffffff"],
  UNLED: [],
};
const into = (rule: string) => ({ do: "insert", rule }) as const;
const anew = (...there: string[]): Step[] => [
  ...there.map(remove),
  ...[acting, second, first].map(into),
];
const drop = "-A OUTPUT -j DROP";
const toUnled = "-A FORWARD -p tcp -j UNLED";

const severals: [when: string, found: Record<string, string[]>, steps: readonly Step[]][] = [
  ["all is there", {}, []],
  ["foreign rules stand behind ours", { OUTPUT: [...allThere.OUTPUT, drop] }, []],
  [
    "harmless ones stand between ours",
    { OUTPUT: [first, "-A OUTPUT -p icmp -j DROP", second, acting] },
    [],
  ],
  [
    "one between ours takes the traffic",
    { OUTPUT: [first, drop, second, acting] },
    anew(first, second, acting),
  ],
  ["one jump of two is missing", { OUTPUT: [second, acting] }, anew(second, acting)],
  ["a rule that acts is missing", { OUTPUT: [first, second] }, anew(first, second)],
  [
    "a rule that acts is doubled",
    { OUTPUT: [...allThere.OUTPUT, acting] },
    anew(...allThere.OUTPUT, acting),
  ],
  ["the order is another", { OUTPUT: [second, first, acting] }, anew(second, first, acting)],
  [
    "a jump with words of ours is doubled",
    { PREROUTING: [conntrack, conntrack] },
    [remove(conntrack), remove(conntrack), into(conntrack)],
  ],
  ["a jump leads into a chain that none should", { FORWARD: [toUnled] }, [remove(toUnled)]],
];

test.each(severals)(
  "plan() of jumps and rules in several builtin chains when %s",
  (_, found, steps) => {
    const traffic: Traffic = { protocols: ["tcp", "udp"], loopback: false };
    expect(plan(several, table({ ...allThere, ...found }), traffic)).toEqual(steps);
  },
);

test("planRemoval() takes out jumps with words of ours, all copies of a rule that acts, and chains without a jump", () => {
  const found = table({ ...allThere, OUTPUT: [acting, ...allThere.OUTPUT, drop] });
  expect(planRemoval(ownIn(several), found)).toEqual([
    ...[reset("BOTH"), reset("UNLED")],
    ...[conntrack, first, second, acting, acting].map(remove),
    ...[deletion("BOTH"), deletion("UNLED")],
  ]);
});

test("planStale() removes a chain that a rule led into which is written over", () => {
  const old = { ...allThere, OLD: ["-A OLD -j ACCEPT"], BOTH: ["-A BOTH -j OLD"] };
  const stale = { name: "mangle", chains: ["OLD"], placed: [] } as const;
  expect(planStale({ ...several, stale }, table(old))).toEqual([reset("OLD"), deletion("OLD")]);
  expect(planStale(several, table(old))).toEqual([]);
});
