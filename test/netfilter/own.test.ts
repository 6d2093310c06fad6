// What is ours by the rulesets that were written: names for removal, and what of earlier rulesets goes.
import { expect, test } from "vitest";
import { actingIn, holdsOwn, ownIn, ownOf, replacing } from "../../src/netfilter/own.ts";
import { emptyTable, type Table } from "../../src/netfilter/table.ts";
import { mangleCapture, natCapture } from "../lab/several-tables.ts";

const [mangle, nat] = [mangleCapture("ipv4"), natCapture("ipv4")];
const zoneJump = "-A OUTPUT -p udp -j MADE_ZONE";
const zones = [
  "-A OUTPUT -p udp -m udp --dport 54 -m owner --uid-owner 1337 -j CT --zone 2",
  "-A PREROUTING -p udp -m udp --sport 53 -j CT --zone 1",
];
const rawNames = { name: "raw", chains: ["MADE_ZONE"], placed: [zoneJump, ...zones] } as const;
const natNames = {
  name: "nat",
  chains: ["MADE_OUT", "MADE_IN"],
  placed: ["-A OUTPUT -j MADE_OUT", "-A PREROUTING -p tcp -j MADE_IN"],
} as const;
const [inJump = "", ...marks] = mangle.tables.flatMap(({ placed }) =>
  placed.map((one) => one.rule),
);
const mangleNames = {
  name: "mangle",
  chains: ["MADE_IN", "MADE_IDLE"],
  placed: [inJump, ...marks],
} as const;

test("ownOf() gives each table once, in the order of tables, and each name once", () => {
  expect(ownOf([])).toEqual([]);
  expect(ownOf([nat])).toEqual([rawNames, natNames]);
  expect(ownOf([nat, natCapture("ipv6"), mangle])).toEqual([rawNames, mangleNames, natNames]);
});

test("ownOf() knows what is stale, and jumps as others spell them", () => {
  const [, table] = nat.tables;
  if (table === undefined) throw new Error("no nat table");
  const stale = { name: "nat", chains: ["OLD"], placed: ["-A OUTPUT -j OLD"] } as const;
  const aliases = ["-A OUTPUT -m comment --comment x -j MADE_OUT"];
  expect(ownIn({ ...table, aliases, stale })).toEqual({
    name: "nat",
    chains: [...natNames.chains, "OLD"],
    placed: [...natNames.placed, ...aliases, "-A OUTPUT -j OLD"],
  });
});

test("replacing() takes out what the former had, in tables of its own if need be", () => {
  const stale = { ...mangleNames };
  expect(replacing(nat, [])).toBe(nat);
  expect(replacing(nat, [nat])).toBe(nat);
  expect(replacing(nat, [mangle])).toEqual({
    ...nat,
    tables: [...nat.tables, { name: "mangle", chains: [], placed: [], stale }],
  });
});

test("replacing() keeps what both have, and takes out the rest of the same table", () => {
  const [raw, table] = nat.tables;
  if (raw === undefined || table === undefined) throw new Error("a table is missing");
  const fewer = { ...nat, tables: [{ ...raw, placed: raw.placed.slice(0, 2) }, table] };
  const stale = { name: "raw", chains: [], placed: zones.slice(1) };
  expect(replacing(fewer, [nat])).toEqual({
    ...nat,
    tables: [table, { ...fewer.tables[0], stale }],
  });
});

test("replacing() leaves former jumps into a chain that stays to that chain", () => {
  const [raw] = nat.tables;
  if (raw === undefined) throw new Error("no raw table");
  const unled = { ...nat, tables: [{ ...raw, placed: raw.placed.slice(1) }] };
  const led = { ...nat, tables: [raw] };
  expect(replacing(unled, [led])).toBe(unled);
});

test("actingIn() gives the rules that lead into no chain of ours", () => {
  expect(actingIn(rawNames)).toEqual(zones);
  expect(actingIn(natNames)).toEqual([]);
});

const tables: [when: string, chains: Record<string, string[]>, holds: boolean][] = [
  ["nothing is there", {}, false],
  ["an own chain is there, empty", { MADE_ZONE: [] }, true],
  [
    "a rule that acts by itself is there",
    { OUTPUT: ["-A OUTPUT -j X", ...zones.slice(0, 1)] },
    true,
  ],
  ["such a rule stands in another chain", { X: [...zones] }, false],
  ["a rule is almost ours", { OUTPUT: ["-A OUTPUT -p udp -j CT --zone 2"] }, false],
];

test.each(tables)("holdsOwn() when %s", (_, chains, holds) => {
  const table: Table = { chains: new Map(Object.entries(chains)) };
  expect(holdsOwn(rawNames, table)).toBe(holds);
  expect(holdsOwn(rawNames, emptyTable)).toBe(false);
});
