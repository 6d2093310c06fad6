// Drift: each kind by itself, how it is told, and that repair (plan) and verdict (compare) agree.
import { expect, test } from "vitest";
import { buildRuleset } from "../../src/mesh/linkerd/ruleset.ts";
import {
  compare,
  compareOther,
  type Drift,
  type DriftKind,
  renderDrift,
} from "../../src/netfilter/compare.ts";
import { emptyTables, ownOf } from "../../src/netfilter/own.ts";
import { emptyTable, type OwnTable, type Ruleset, type Table } from "../../src/netfilter/table.ts";
import { transactionTo } from "../../src/netfilter/transaction.ts";
import { familyCases, leastIntent } from "../lab/case.ts";
import { namesIn, rulesetWith, withNat } from "../lab/rulesets.ts";
import { tableOf } from "../lab/trace.ts";

const jump = "-A OUTPUT -j OUT";
const chain = { name: "OUT", hook: "OUTPUT", jump } as const;
const rules = ["-A OUT -p tcp", "-A OUT -p udp", "-A OUT"];
const ruleset = rulesetWith("ipv4", [{ ...chain, rules }]);
const right = { OUTPUT: [jump], OUT: ["-A OUT -p tcp", "-A OUT -p udp", "-A OUT"] };

const table = (entries: Record<string, string[]>): Table => ({
  chains: new Map(Object.entries(entries)),
});

type Told = Omit<Drift, "family">;
const missing = (expected: string): Told => ({
  kind: "missing-rule",
  chain: "OUT",
  expected,
  found: "",
});
const extra = (found: string, chain = "OUT"): Told => ({
  kind: "extra-rule",
  chain,
  expected: "",
  found,
});
const noJump: Told = { kind: "missing-jump", chain: "OUTPUT", expected: jump, found: "" };
const noChain: Told = { kind: "missing-chain", chain: "OUT", expected: ":OUT - [0:0]", found: "" };
const doubled = (found: string): Told => ({
  kind: "duplicate-jump",
  chain: "OUTPUT",
  expected: jump,
  found,
});
const shadowed = (found: string): Told => ({
  kind: "shadowed-jump",
  chain: "OUTPUT",
  expected: jump,
  found,
});
const reordered = (expected: string, found: string): Told => ({
  kind: "reordered",
  chain: "OUT",
  expected,
  found,
});

const stamped = '-A OUTPUT -m comment --comment "proxy-init/1" -j OUT';
const [odd, stray, taker] = ["-A OUTPUT -p tcp -j OUT", "-A INPUT -j OUT", "-A OUTPUT -j ACCEPT"];
const [tcp, udp, rest] = ["-A OUT -p tcp", "-A OUT -p udp", "-A OUT"];
const changed = "-A OUT -p tcp -m tcp --dport 1";

const drifts: [when: string, found: Record<string, string[]>, told: Told[]][] = [
  ["all is there", {}, []],
  ["comments differ", { OUTPUT: [stamped], OUT: [`${tcp} -m comment --comment x`, udp, rest] }, []],
  ["foreign chains and rules are there", { OUTPUT: [jump, taker], X: ["-A X -j OUT"] }, []],
  ["a harmless rule is ahead", { OUTPUT: ["-A OUTPUT -p udp -j ACCEPT", jump] }, []],
  ["a rule is missing", { OUT: [tcp, rest] }, [missing(udp)]],
  ["all rules are missing", { OUT: [] }, [missing(tcp), missing(udp), missing(rest)]],
  ["a rule is too many", { OUT: [tcp, udp, changed, rest] }, [extra(changed)]],
  ["a rule is doubled", { OUT: [tcp, tcp, udp, rest] }, [extra(tcp)]],
  ["a rule is changed", { OUT: [changed, udp, rest] }, [missing(tcp), extra(changed)]],
  ["two rules are swapped", { OUT: [udp, tcp, rest] }, [reordered(tcp, udp)]],
  ["the last rule is first", { OUT: [rest, tcp, udp] }, [reordered(tcp, rest)]],
  ["one is missing, two are swapped", { OUT: [rest, tcp] }, [missing(udp), reordered(tcp, rest)]],
  [
    "one is extra, two are swapped",
    { OUT: [changed, udp, tcp, rest] },
    [extra(changed), reordered(tcp, udp)],
  ],
  ["the jump is missing", { OUTPUT: [] }, [noJump]],
  ["the hook is missing", { OUTPUT: [taker] }, [noJump]],
  ["the jump is doubled", { OUTPUT: [jump, taker, jump] }, [doubled(jump)]],
  ["the jump is doubled with a stamp", { OUTPUT: [jump, stamped] }, [doubled(stamped)]],
  ["the jump is odd", { OUTPUT: [odd] }, [noJump, extra(odd, "OUTPUT")]],
  ["an odd jump is behind ours", { OUTPUT: [jump, odd] }, [extra(odd, "OUTPUT")]],
  ["an odd jump is ahead of ours", { OUTPUT: [odd, jump] }, [shadowed(odd), extra(odd, "OUTPUT")]],
  ["another hook jumps too", { INPUT: [stray] }, [extra(stray, "INPUT")]],
  ["a foreign rule takes the traffic", { OUTPUT: [taker, jump] }, [shadowed(taker)]],
  [
    "it takes it ahead of both jumps",
    { OUTPUT: [taker, jump, jump] },
    [doubled(jump), shadowed(taker)],
  ],
  ["it stands between both jumps", { OUTPUT: [jump, taker, jump] }, [doubled(jump)]],
];

test.each(drifts)("compare() names each difference when %s", (_, found, told) => {
  const family = "ipv4";
  expect(compare(ruleset, withNat(table({ ...right, ...found })))).toEqual(
    told.map((one) => ({ family, ...one })),
  );
});

test("compare() names chain and jump when nothing is there", () => {
  const all = [noChain, noJump].map((one) => ({ family: "ipv4", ...one }));
  expect(compare(ruleset, withNat(emptyTable))).toEqual(all);
});

test("compare() names the jump when only the chain is there", () => {
  expect(compare(ruleset, withNat(table({ OUT: right.OUT })))).toEqual([
    { family: "ipv4", ...noJump },
  ]);
});

test("compare() does not judge what cannot be seen", () => {
  const unverifiable = "Table `nat' is incompatible, use 'nft' tool.";
  expect(compare(ruleset, withNat({ chains: new Map(), unverifiable }))).toEqual([
    { kind: "unverifiable", family: "ipv4", chain: "", expected: "", found: unverifiable },
  ]);
});

test.each(familyCases)("compare() and plan() agree, rule by rule: $title", ({ entry, family }) => {
  const wanted = buildRuleset(entry.intent, family);
  const whole = tableOf(wanted);
  const tables = withNat(whole);
  expect([compare(wanted, tables), transactionTo(wanted, tables)]).toEqual([[], []]);
  for (const damaged of damages(whole).map(withNat)) {
    expect(compare(wanted, damaged)).not.toEqual([]);
    expect(transactionTo(wanted, damaged)).not.toEqual([]);
  }
});

/** The table with each rule, in turn, taken away, doubled, or put last; and with each chain taken away. */
function damages({ chains }: Table): Table[] {
  const changes = [...chains].flatMap(([name, rules]) =>
    rules.flatMap((rule, at) => {
      const without = rules.toSpliced(at, 1);
      const last = at === rules.length - 1 ? [] : [[...without, rule]];
      return [without, [...rules, rule], ...last].map((changed) => [name, changed] as const);
    }),
  );
  const fewer = [...chains.keys()].map((name) => [...chains].filter(([other]) => other !== name));
  return [
    ...changes.map((change) => ({ chains: new Map([...chains, change]) })),
    ...fewer.map((rest) => ({ chains: new Map(rest) })),
  ];
}

test("compare() takes equal rules one for one, in tables of any length", {
  timeout: 60_000,
}, () => {
  const many = Array.from({ length: 20_000 }, (_, i) => `-A OUT -p tcp -m tcp --dport ${i}`);
  const large = rulesetWith("ipv4", [{ ...chain, rules: many }]);
  expect(compare(large, withNat(table({ ...right, OUT: many.toReversed() })))).toEqual([
    { family: "ipv4", ...reordered(many[0] ?? "", many.at(-1) ?? "") },
  ]);
  const long = withNat(table({ ...right, OUT: [...right.OUT, ...many] }));
  expect(compare(ruleset, long)).toHaveLength(20_000);
});

test("renderDrift() cuts what was found, and spells it out", () => {
  const found = `-A OUT -m comment --comment "${"x".repeat(300)}\u202e"`;
  const [head, tail] = [found.slice(0, 150), `${"x".repeat(93)}\\u202e"`];
  expect(renderDrift({ family: "ipv4", ...extra(found) })).toBe(
    `extra-rule (ipv4 nat OUT): found ${head} ... ${tail}`,
  );
});

const linkerds = buildRuleset(leastIntent, "ipv6");
const elsewhere = { ruleset: linkerds, own: namesIn(linkerds), backend: "legacy" } as const;

test("compareOther() names own chains and foreign redirects of the other backend", () => {
  const other = table({
    OUTPUT: ["-A OUTPUT -j PROXY_INIT_OUTPUT", "-A OUTPUT -p tcp -j REDIRECT --to-ports 1"],
    PROXY_INIT_OUTPUT: ["-A PROXY_INIT_OUTPUT -p tcp -j REDIRECT --to-ports 4140"],
    X: ["-A X -p tcp -j DNAT --to-destination 1.2.3.4", "-A X -p udp -j REDIRECT --to-ports 1"],
  });
  const told = (found: string) => ({
    kind: "other-backend",
    family: "ipv6",
    chain: "",
    expected: "",
    found,
  });
  expect(compareOther(elsewhere, other)).toEqual([
    told("own chain PROXY_INIT_OUTPUT in legacy as well"),
    told("a redirect of someone else's in legacy: -A OUTPUT -p tcp -j REDIRECT --to-ports 1"),
    told("a redirect of someone else's in legacy: -A X -p tcp -j DNAT --to-destination 1.2.3.4"),
  ]);
  expect(compareOther(elsewhere, emptyTable)).toEqual([]);
});

const lines: [told: Told, line: string][] = [
  [missing(tcp), "missing-rule (ipv4 nat OUT): expected -A OUT -p tcp; found nothing"],
  [extra(odd, "OUTPUT"), "extra-rule (ipv4 nat OUTPUT): found -A OUTPUT -p tcp -j OUT"],
  [noChain, "missing-chain (ipv4 nat OUT): expected :OUT - [0:0]; found nothing"],
  [noJump, "missing-jump (ipv4 nat OUTPUT): expected -A OUTPUT -j OUT; found nothing"],
  [
    shadowed(taker),
    "shadowed-jump (ipv4 nat OUTPUT): expected -A OUTPUT -j OUT; found -A OUTPUT -j ACCEPT",
  ],
  [
    { kind: "unverifiable", chain: "", expected: "", found: "x" },
    "unverifiable (ipv4 nat): found x",
  ],
];

test.each(lines)("renderDrift() tells %j in one line", (told, line) => {
  expect(renderDrift({ family: "ipv4", ...told })).toBe(line);
});

const [zone, marked] = [
  "-A OUTPUT -p udp -j ZONE",
  "-A OUTPUT -p udp -m mark --mark 0x1 -j CT --zone 2",
];
const raw: OwnTable = {
  name: "raw",
  chains: [
    { name: "ZONE", rules: ["-A ZONE -j CT --zone 1"] },
    { name: "UNLED", rules: [] },
  ],
  placed: [
    { hook: "OUTPUT", rule: zone },
    { hook: "PREROUTING", rule: zone.replace("OUTPUT", "PREROUTING") },
    { hook: "OUTPUT", rule: marked },
  ],
};
const rawRight = {
  OUTPUT: [zone, marked],
  PREROUTING: [zone.replace("OUTPUT", "PREROUTING")],
  ZONE: ["-A ZONE -j CT --zone 1"],
  UNLED: [],
};
const dropUdp = "-A OUTPUT -p udp -j DROP";
const inRaw = (kind: DriftKind, [expected, found]: [string, string], chain = "OUTPUT"): Told => {
  return { kind, table: "raw", chain, expected, found };
};
const toUnled = "-A PREROUTING -p udp -j UNLED";

const rawDrifts: [when: string, found: Record<string, string[]>, told: Told[]][] = [
  ["all is there", {}, []],
  ["rules for TCP are ahead", { OUTPUT: ["-A OUTPUT -p tcp -j DROP", zone, marked] }, []],
  ["a rule that acts is missing", { OUTPUT: [zone] }, [inRaw("missing-rule", [marked, ""])]],
  [
    "a rule that acts is doubled",
    { OUTPUT: [zone, marked, marked] },
    [inRaw("extra-rule", [marked, marked])],
  ],
  [
    "rules of ours are in another order",
    { OUTPUT: [marked, zone] },
    [inRaw("reordered", [zone, marked])],
  ],
  [
    "a foreign rule takes the traffic of both",
    { OUTPUT: [dropUdp, zone, marked] },
    [inRaw("shadowed-jump", [zone, dropUdp]), inRaw("shadowed-jump", [marked, dropUdp])],
  ],
  [
    "a foreign rule takes that of the second",
    { OUTPUT: [zone, dropUdp, marked] },
    [inRaw("shadowed-jump", [marked, dropUdp])],
  ],
  [
    "one of two jumps into a chain is missing",
    { PREROUTING: [] },
    [inRaw("missing-jump", [zone.replace("OUTPUT", "PREROUTING"), ""], "PREROUTING")],
  ],
  [
    "a jump leads into the chain that none should",
    { PREROUTING: [...rawRight.PREROUTING, toUnled] },
    [inRaw("extra-rule", ["", toUnled], "PREROUTING")],
  ],
];

test.each(rawDrifts)("compare() names what differs from rules of raw when %s", (_, found, told) => {
  const udp: Ruleset = {
    family: "ipv6",
    tables: [raw],
    traffic: { protocols: ["udp"], loopback: false },
  };
  const tables = { ...emptyTables, raw: table({ ...rawRight, ...found }) };
  expect(compare(udp, tables)).toEqual(told.map((one) => ({ family: "ipv6", ...one })));
});

test("compare() names each stale chain and rule once", () => {
  const old = "-A OUTPUT -p udp -j CT --zone 7";
  const stale = { name: "raw", chains: ["OLD"], placed: ["-A OUTPUT -j OLD", old] } as const;
  const ofStale: Ruleset = { ...ruleset, tables: [{ ...raw, stale }] };
  const found = table({ ...rawRight, OUTPUT: [zone, marked, old, "-A OUTPUT -j OLD"], OLD: [] });
  expect(compare(ofStale, { ...emptyTables, raw: found })).toEqual([
    { family: "ipv4", ...inRaw("extra-rule", ["", ":OLD - [0:0]"], "OLD") },
    { family: "ipv4", ...inRaw("extra-rule", ["", old]) },
  ]);
});

test("compareOther() names rules that act by themselves, in the table where they are", () => {
  const [own] = ownOf([{ ...ruleset, tables: [raw] }]);
  if (own === undefined) throw new Error("nothing is ours");
  const told = (found: string) => inRaw("other-backend", ["", found], "");
  expect(compareOther({ ruleset, own, backend: "nft" }, table(rawRight))).toEqual(
    [
      told("own chain ZONE in nft as well"),
      told("own chain UNLED in nft as well"),
      told(`a rule of ours in nft as well: ${marked}`),
    ].map((one) => ({ family: "ipv4", ...one })),
  );
});
