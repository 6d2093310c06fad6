// nft's own view of a netns, read from what the real tool printed.
import { expect, test } from "vitest";
import { longestNativeChars, parseNative } from "../../../src/netfilter/native/view.ts";
import { thrownBy } from "../../fake/thrown.ts";
import { recorded, viewOf } from "../../lab/native.ts";

test("parseNative() gives chains and rules of the IP families, and tables that are switched off", () => {
  const { chains, rules, dormant } = viewOf("dormant");
  const base = { type: "nat", hook: "output", priority: -100 };
  expect({ chains, dormant }).toEqual({
    chains: [{ families: ["ipv4"], table: "ip nat", name: "OUTPUT", base }],
    dormant: ["ip nat"],
  });
  expect(
    rules.map(({ statements, ...place }) => [place, statements.map(({ word }) => word)]),
  ).toEqual([[{ table: "ip nat", chain: "OUTPUT" }, ["match", "counter", "return"]]]);
});

test("parseNative() reads an empty netns, and a netns with tables of all families", () => {
  const nothing = { chains: [], rules: [], dormant: [] };
  expect(viewOf("nothing")).toEqual(nothing);
  expect(parseNative("")).toEqual(nothing);
  const { chains, dormant } = viewOf("bases");
  const inBoth = chains.filter(({ families }) => families.length === 2).map(({ name }) => name);
  expect({ inBoth, dormant }).toEqual({ inBoth: ["both", "named", "hidden"], dormant: ["ip6 z"] });
});

const table = (flags: unknown) =>
  JSON.stringify({ nftables: [{ table: { family: "ip", name: "nat", flags } }] });

const flags: [what: unknown, dormant: string[]][] = [
  ["dormant", ["ip nat"]],
  [["dormant", "owner"], ["ip nat"]],
  // What nft 1.0.6 prints in the place of a single flag.
  ["Lester Gooch #5", ["ip nat"]],
  ["owner", []],
  [["owner", "persist"], []],
];

test.each(flags)("parseNative() takes the flags %j as they are meant", (given, dormant) => {
  expect(parseNative(table(given)).dormant).toEqual(dormant);
});

test("parseNative() takes names as values, whatever is in them", () => {
  const name = '__proto__\n-A OUTPUT "';
  const chain = { family: "ip", table: name, name };
  const text = JSON.stringify({ nftables: [{ chain }, { chain: { ...chain, family: "arp" } }] });
  expect(parseNative(text).chains).toEqual([{ families: ["ipv4"], table: `ip ${name}`, name }]);
});

test("parseNative() holds a base chain whose priority it cannot read to come first", () => {
  const base = { type: "nat", hook: "output" };
  const text = JSON.stringify({
    nftables: [{ chain: { family: "ip", table: "t", name: "c", ...base } }],
  });
  expect(parseNative(text).chains[0]?.base).toEqual({ ...base, priority: -Infinity });
});

const broken: [what: string, text: string, problem: string][] = [
  ["is cut off", recorded("dormant").slice(0, -9), "what is no JSON"],
  ["is no listing", '{"nftables": 1}', "JSON that is no listing"],
  ["is too long", " ".repeat(longestNativeChars + 1), "more than 8388608 characters"],
];

test.each(broken)("parseNative() throws for what %s", (_, text, problem) => {
  expect(thrownBy(() => parseNative(text))).toMatch(`NativeSyntaxError: nft printed ${problem}`);
});
