// What two spellings of a chain have in common, and what sets two chains apart.
import { expect, test } from "vitest";
import { meaningOf } from "../../../src/mesh/linkerd/meaning.ts";
import { buildRuleset } from "../../../src/mesh/linkerd/ruleset.ts";
import { familyCases } from "../../lab/case.ts";
import { natIn } from "../../lab/rulesets.ts";

const multiport = (ports: string) => `-A A -p tcp -m multiport --dports ${ports} -j RETURN`;
const uid = "-A A -m owner --uid-owner 2102 -j RETURN";
const gid = "-A A -m owner --gid-owner 2102 -j RETURN";
const lo = "-A A -o lo -j RETURN";
const source = (subnet: string) => `-A A -s ${subnet} -j RETURN`;
const all = "-A A -p tcp -j REDIRECT --to-ports 4143";
const one = (port: number) => `-A A -p tcp -m tcp --dport ${port} -j REDIRECT --to-ports 4143`;

const same: [how: string, a: string[], b: string[]][] = [
  ["the order of ports", [multiport("4190,4191,25"), all], [multiport("25,4191,4190"), all]],
  ["the packing of ports", [multiport("1,2,3,9"), all], [multiport("1:3"), multiport("9"), all]],
  ["overlapping ports", [multiport("1:5,3:9"), all], [multiport("1:9"), all]],
  ["port 0", [multiport("0:9"), all], [multiport("1:9"), all]],
  ["the order of exemptions", [uid, gid, lo, all], [lo, gid, uid, all]],
  ["a rule said twice", [uid, uid, all], [uid, all]],
  [
    "the order of sources",
    [source("10.0.0.0/8"), source("fd00::/8")],
    [source("fd00::/8"), source("10.0.0.0/8")],
  ],
  ["the order of redirected ports", [one(80), one(443)], [one(443), one(80)]],
  [
    "comments",
    [all],
    ['-A A -p tcp -m comment --comment "proxy-init/x" -j REDIRECT --to-ports 4143'],
  ],
];

test.each(same)("meaningOf() is the same whatever is %s", (_, a, b) => {
  expect(meaningOf(a)).toBe(meaningOf(b));
  expect(meaningOf(a)).toBeTypeOf("string");
});

const different: [what: string, a: string[], b: string[]][] = [
  ["a port", [multiport("4190"), all], [multiport("4190,4191"), all]],
  ["a user", [uid, all], [uid.replace("2102", "2103"), all]],
  ["a group in the place of a user", [uid, all], [gid, all]],
  ["loopback", [uid, lo, all], [uid, all]],
  ["a source", [source("10.0.0.0/8"), all], [source("10.0.0.0/16"), all]],
  ["everything let pass", [source("10.0.0.0/8"), all], ["-A A -j RETURN", all]],
  ["the proxy's port", [all], [all.replace("4143", "4140")]],
  ["one redirected port", [one(80), one(443)], [one(80)]],
  ["redirecting one port or all", [one(80)], [all]],
  ["an exemption behind the redirect", [uid, all], [all, uid]],
  ["a redirect that is missing", [uid, all], [uid]],
  ["no rule at all", [all], []],
];

test.each(different)("meaningOf() tells %s apart", (_, a, b) => {
  expect(meaningOf(a)).not.toBe(meaningOf(b));
});

const unknown = [
  "-A A -p tcp -j ACCEPT",
  "-A A -p udp -m multiport --dports 53 -j RETURN",
  "-A A -o lo ! -d 127.0.0.1/32 -m owner --uid-owner 2102 -j PROXY_INIT_REDIRECT",
  "-A A -p tcp -m multiport ! --dports 80 -j RETURN",
  "-A A ! -s 10.0.0.0/8 -j RETURN",
  "-A A -m owner ! --uid-owner 2102 -j RETURN",
  "-A A -p tcp -m multiport --dports 80, -j RETURN",
  "-A A -p tcp",
  "",
];

test.each(unknown)("meaningOf() has none for a chain with %j", (rule) => {
  expect(meaningOf([uid, rule, all])).toBeUndefined();
});

test.each(familyCases)("meaningOf() knows all rules of our own: $title", ({ entry, family }) => {
  const { chains } = natIn(buildRuleset(entry.intent, family));
  const meanings = chains.map(({ rules }) => meaningOf(rules));
  expect(meanings.map((meaning) => typeof meaning)).toEqual(["string", "string"]);
});
