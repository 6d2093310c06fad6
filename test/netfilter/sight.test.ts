// What CHECK makes of all that was seen of a netns: nft's own chains (recorded from the real tool), and iptables' raw and
// mangle tables.
import { expect, test } from "vitest";
import { buildRuleset } from "../../src/mesh/linkerd/ruleset.ts";
import { renderDrift } from "../../src/netfilter/compare.ts";
import type { NativeBase, NativeView } from "../../src/netfilter/native/view.ts";
import { emptyTables } from "../../src/netfilter/own.ts";
import { parseSave } from "../../src/netfilter/save.ts";
import { compareSight, type Save, type Sight } from "../../src/netfilter/sight.ts";
import { type Backend, emptyTable, type Family, type Table } from "../../src/netfilter/table.ts";
import { leastIntent } from "../lab/case.ts";
import { viewOf } from "../lab/native.ts";
import { ledChains } from "../lab/rulesets.ts";
import { natCapture, tablesOf } from "../lab/several-tables.ts";
import { tableOf } from "../lab/trace.ts";

const rulesets = (["ipv4", "ipv6"] as const).map((family) => buildRuleset(leastIntent, family));
const [inboundJump, outboundJump] = rulesets
  .slice(0, 1)
  .flatMap(ledChains)
  .map(({ jump }) => jump);

/** Saves of a netns that is in order, but for what is changed in one of its tables. */
function saves(change: Partial<Record<Family, Partial<Save["tables"]>>> = {}): Save[] {
  return rulesets.map((ruleset): Save => {
    const tables = { nat: tableOf(ruleset), raw: emptyTable, mangle: emptyTable };
    return {
      family: ruleset.family,
      backend: "nft",
      tables: { ...tables, ...change[ruleset.family] },
    };
  });
}

function driftsOf(sight: Sight, backend: Backend = "nft"): string[] {
  const expected = { rulesets, backend, standFor: () => false };
  return compareSight(expected, sight).map(renderDrift);
}

const out = `expected ${outboundJump}; found nft's chain`;
const into = `expected ${inboundJump}; found nft's chain`;
test("compareSight() names the chains of nft's own that take the traffic before our jumps, and no others", () => {
  const taking = (family: Family) => [
    `shadowed-jump (${family} nat OUTPUT): ${out} named in table inet y (nat, output, priority -120) takes the traffic before it: redirect`,
    `shadowed-jump (${family} nat OUTPUT): ${out} both in table inet y (nat, output, priority -110) takes the traffic before it: redirect`,
  ];
  expect(driftsOf({ saves: saves(), native: viewOf("bases") }).toSorted()).toEqual(
    [
      `shadowed-jump (ipv4 nat OUTPUT): ${out} same in table ip x (nat, output, priority -100) takes the traffic before it: redirect`,
      `shadowed-jump (ipv4 nat PREROUTING): ${into} early in table ip x (nat, prerouting, priority -150) takes the traffic before it: dnat`,
      `shadowed-jump (ipv4 nat OUTPUT): ${out} untracked in table ip x (filter, output, priority -200) takes the traffic before it: notrack`,
      `shadowed-jump (ipv4 nat PREROUTING): ${into} mangled in table ip x (filter, prerouting, priority 0) takes the traffic before it: tproxy`,
      `shadowed-jump (ipv4 nat OUTPUT): ${out} routed in table ip x (route, output, priority -300) takes the traffic before it: notrack`,
      ...taking("ipv4"),
      ...taking("ipv6"),
    ].toSorted(),
  );
});

test("compareSight() leaves alone chains that touch only what our chains let pass anyway", () => {
  expect(driftsOf({ saves: saves(), native: viewOf("other-traffic") })).toEqual([]);
});

test("compareSight() names chains of which it is not certain that they do", () => {
  const drifts = driftsOf({ saves: saves(), native: viewOf("touching") });
  const named = drifts.map((line) => /nft's chain (\w)/.exec(line)?.[1]);
  expect(named).toEqual(["p", "q", "r", "t", "u", "v"]);
});

test("compareSight() takes what iptables itself made for what save shows of it", () => {
  expect(driftsOf({ saves: saves(), native: viewOf("iptables") })).toEqual([]);
});

test("compareSight() looks at nft's view of iptables' tables where there is no save of them", () => {
  const legacy = saves().map((save): Save => ({ ...save, backend: "legacy" }));
  const drifts = driftsOf({ saves: legacy, native: viewOf("iptables") }, "legacy");
  expect(drifts.map((line) => /table .*/.exec(line)?.[0])).toEqual([
    "table ip nat (nat, output, priority -100) takes the traffic before it: xt",
    "table ip raw (filter, output, priority -300) takes the traffic before it: xt",
    "table ip mangle (filter, prerouting, priority -150) takes the traffic before it: xt",
  ]);
});

test("compareSight() names a dormant nat table where our rules are in it", () => {
  const sight = { saves: saves(), native: viewOf("dormant") };
  expect(driftsOf(sight)).toEqual([
    "dormant-table (ipv4 nat): found table ip nat is dormant: its rules are there, and none of them acts",
  ]);
  const legacy = saves().map((save): Save => ({ ...save, backend: "legacy" }));
  expect(driftsOf({ ...sight, saves: legacy }, "legacy")).toEqual([]);
});

const unshown: Table = {
  chains: new Map(),
  unverifiable: "Table `nat' contains incompatible base-chains, use 'nft' tool to list them.",
};

test("compareSight() tells what hides the nat table, and what save shows in part", () => {
  const found = `${unshown.unverifiable} It holds nft's chain foreign in table ip nat (nat, output, priority -110), nft's chain up in table ip nat (nat, postrouting, priority 90), rules of nft's own in chain MINE, rules of nft's own in chain foreign.`;
  const sight = { saves: saves({ ipv4: { nat: unshown } }), native: viewOf("nat-table") };
  expect(driftsOf(sight)).toEqual([
    `unverifiable (ipv4 nat): found ${found}`,
    "unverifiable (ipv4 nat): found rules of nft's own, which iptables-save shows in part, in chain MINE, OUTPUT",
    `shadowed-jump (ipv4 nat OUTPUT): ${out} foreign in table ip nat (nat, output, priority -110) takes the traffic before it: redirect`,
  ]);
  expect(driftsOf({ ...sight, native: undefined })).toEqual([
    `unverifiable (ipv4 nat): found ${unshown.unverifiable}`,
  ]);
});

test("compareSight() says that nft's view cannot be used", () => {
  const native = new Error("nft was ended while it listed the chains (134)");
  expect(driftsOf({ saves: saves(), native })).toEqual([
    `unverifiable (ipv4 nat): found ${native.message}`,
    `unverifiable (ipv6 nat): found ${native.message}`,
  ]);
});

test("compareSight() looks into so many chains of nft's own, and says how many more there are", () => {
  const base = { type: "nat", hook: "output", priority: -110 };
  const chains = Array.from({ length: 40 }, (_, i) => {
    return { families: ["ipv4"], table: "ip x", name: `c${i}`, base } as const;
  });
  expect(driftsOf({ saves: saves(), native: { chains, rules: [], dormant: [] } })).toEqual([
    "unverifiable (ipv4 nat): found 8 more base chains of nft's own, too many to look into",
  ]);
});

/** A table with builtin chains PREROUTING and OUTPUT, and one more. */
const tableWith = (name: "raw" | "mangle", ...rules: string[]): Table => {
  const names = ["PREROUTING", "OUTPUT", "MINE"];
  const declared = names.map((chain) => `:${chain} ${chain === "MINE" ? "-" : "ACCEPT"} [0:0]`);
  const inTurn = names.flatMap((chain) => rules.filter((rule) => rule.startsWith(`-A ${chain} `)));
  return parseSave([`*${name}`, ...declared, ...inTurn, "COMMIT", ""].join("\n"), name);
};

const taken: [table: "raw" | "mangle", place: string, rules: string[]][] = [
  ["raw", "PREROUTING", ["-A PREROUTING -p tcp -j CT --notrack"]],
  ["raw", "OUTPUT", ["-A OUTPUT -j CT --notrack"]],
  ["raw", "OUTPUT", ["-A OUTPUT -j NOTRACK"]],
  ["raw", "OUTPUT", ["-A MINE -j CT --notrack", "-A OUTPUT -p tcp -j MINE"]],
  ["raw", "OUTPUT", ["-A MINE -j CT --notrack", "-A OUTPUT -g MINE"]],
  [
    "mangle",
    "PREROUTING",
    ["-A PREROUTING -p tcp -j TPROXY --on-port 99 --on-ip 0.0.0.0 --tproxy-mark 0x0/0x0"],
  ],
];

test.each(taken)(
  "compareSight() names what takes the traffic away in %s, chain %s: %j",
  (name, hook, rules) => {
    for (const family of ["ipv4", "ipv6"] as const) {
      const table = tableWith(name, ...rules);
      expect(
        driftsOf({ saves: saves({ [family]: { [name]: table } }), native: undefined }),
      ).toEqual([`shadowed-jump (${family} ${name} ${hook}): found ${rules[0]}`]);
    }
  },
);

const harmless: ["raw" | "mangle", ...string[]][] = [
  ["raw", "-A PREROUTING -p udp -j CT --notrack"],
  ["raw", "-A PREROUTING -i lo -j CT --notrack", "-A OUTPUT -o lo -j CT --notrack"],
  ["raw", "-A OUTPUT -p tcp -j CT --zone 5"],
  ["raw", '-A OUTPUT -p tcp -m comment --comment "-j CT --notrack" -j ACCEPT'],
  ["raw", "-A MINE -j CT --notrack"],
  ["raw", "-A MINE -j CT --notrack", "-A OUTPUT -p udp -j MINE"],
  ["mangle", "-A PREROUTING -p udp -j TPROXY --on-port 99 --on-ip 0.0.0.0 --tproxy-mark 0x0/0x0"],
  ["mangle", "-A OUTPUT -p tcp -j MARK --set-xmark 0x7/0xffffffff"],
];

test.each(harmless)("compareSight() leaves alone in %s: %s %s", (name, ...rules) => {
  const table = tableWith(name, ...rules.filter((rule) => rule !== undefined));
  expect(driftsOf({ saves: saves({ ipv4: { [name]: table } }), native: undefined })).toEqual([]);
});

test("compareSight() goes through each chain once, however they jump to each other", () => {
  const names = Array.from({ length: 40 }, (_, i) => `C${i}`);
  const jumps = names.flatMap((name) => names.map((other) => `-A ${name} -j ${other}`));
  const declared = names.map((chain) => `:${chain} - [0:0]`);
  const lines = [
    "*raw",
    ":OUTPUT ACCEPT [0:0]",
    ...declared,
    "-A OUTPUT -j C0",
    ...jumps,
    "-A C39 -j CT --notrack",
    "COMMIT",
    "",
  ];
  const raw = parseSave(lines.join("\n"), "raw");
  expect(driftsOf({ saves: saves({ ipv4: { raw } }), native: undefined })).toEqual([
    "shadowed-jump (ipv4 raw OUTPUT): found -A C39 -j CT --notrack",
  ]);
});

test("compareSight() says that raw cannot be shown, where nft shows it neither", () => {
  const raw: Table = {
    chains: new Map(),
    unverifiable: "Table `raw' is incompatible, use 'nft' tool.",
  };
  const seen = saves({ ipv4: { raw } });
  expect(driftsOf({ saves: seen, native: undefined })).toEqual([
    `unverifiable (ipv4 raw): found ${raw.unverifiable}`,
  ]);
  expect(driftsOf({ saves: seen, native: viewOf("nothing") })).toEqual([]);
});

/** A chain of nft's own with one statement, at this place. */
function nativeChain(name: string, base: NativeBase, word: string): NativeView {
  const chain = { families: ["ipv4"], table: "inet x", name, base } as const;
  const rules = [{ table: "inet x", chain: name, statements: [{ word, value: null }] }];
  return { chains: [chain], rules, dormant: [] };
}

test("compareSight() names the rules of each table that a chain of nft's own takes the traffic from", () => {
  const ruleset = natCapture("ipv4");
  const expected = { rulesets: [ruleset], backend: "nft", standFor: () => false } as const;
  const tables = { ...emptyTables, ...tablesOf([ruleset]) };
  const seen: Save[] = [{ family: "ipv4", backend: "nft", tables }];
  const losersTo = (native: NativeView) =>
    compareSight(expected, { saves: seen, native }).map(({ table, chain, expected }) => [
      table ?? "nat",
      chain,
      expected,
    ]);
  const [raw, nat] = ruleset.tables.map(({ name, placed }) => {
    return placed.filter(({ hook }) => hook === "OUTPUT").map(({ rule }) => [name, "OUTPUT", rule]);
  });
  const translating = { type: "nat", hook: "output", priority: -110 };
  expect(losersTo(nativeChain("t", translating, "redirect"))).toEqual(nat);
  const untracking = { type: "filter", hook: "output", priority: -310 };
  expect(losersTo(nativeChain("u", untracking, "notrack"))).toEqual([
    ...(raw ?? []),
    ...(nat ?? []),
  ]);
});

test("compareSight() does not hold rules of ours in raw and mangle for somebody else's", () => {
  const ruleset = natCapture("ipv4");
  const expected = { rulesets: [ruleset], backend: "nft", standFor: () => false } as const;
  const notrack = "-A OUTPUT -p udp -j CT --notrack";
  const raw = tablesOf([ruleset]).raw?.chains ?? new Map<string, string[]>();
  const doubted = new Map([...raw, ["OUTPUT", [...(raw.get("OUTPUT") ?? []), notrack]]]);
  const tables = { ...emptyTables, ...tablesOf([ruleset]), raw: { chains: doubted } };
  const saves: Save[] = [{ family: "ipv4", backend: "nft", tables }];
  expect(compareSight(expected, { saves, native: undefined }).map(renderDrift)).toEqual([
    `shadowed-jump (ipv4 raw OUTPUT): found ${notrack}`,
  ]);
});
