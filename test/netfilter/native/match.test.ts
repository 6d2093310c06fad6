// Rules in nft's JSON, against traffic: which can match a packet that rules of ours wait for.
import { expect, test } from "vitest";
import { couldMatch, type Flow } from "../../../src/netfilter/native/match.ts";
import type { Statement } from "../../../src/netfilter/native/view.ts";

const tcp: Flow = { family: "ipv4", traffic: { protocols: ["tcp"], loopback: false } };
const dns: Flow = { family: "ipv6", traffic: { protocols: ["udp"], loopback: true } };
const both: Flow = { family: "ipv4", traffic: { protocols: ["tcp", "udp"], loopback: false } };

const meta = (key: string) => ({ meta: { key } });
const payload = (protocol: string, field: string) => ({ payload: { protocol, field } });
const match = (left: unknown, right: unknown, op = "=="): Statement => {
  return { word: "match", value: { op, left, right } };
};
const set = (...values: unknown[]) => ({ set: values });
const net = (addr: string, len: number) => ({ prefix: { addr, len } });

const matches: [rule: Statement, ofTcp: boolean, ofDns: boolean, ofBoth: boolean][] = [
  [match(meta("l4proto"), "tcp"), true, false, true],
  [match(meta("l4proto"), "udp"), false, true, true],
  [match(meta("l4proto"), 17), false, true, true],
  [match(meta("l4proto"), "icmp"), false, false, false],
  [match(meta("l4proto"), set("icmp", "udp")), false, true, true],
  [match(meta("l4proto"), "@protocols"), true, true, true],
  [match(meta("l4proto"), "tcp", "!="), false, true, true],
  [match(meta("l4proto"), "udp", "!="), true, false, true],
  [match(payload("udp", "dport"), 53), false, true, true],
  [match(payload("tcp", "dport"), 80), true, false, true],
  [match(payload("icmp", "type"), 8), false, false, false],
  [match(payload("ip", "protocol"), "udp"), false, false, true],
  [match(payload("ip6", "nexthdr"), "udp"), false, true, false],
  [match(meta("oifname"), "lo"), false, true, false],
  [match(meta("iifname"), "lo"), false, true, false],
  [match(meta("oifname"), "eth0"), true, true, true],
  [match(meta("oifname"), "lo", "!="), true, true, true],
  [match(payload("ip", "daddr"), "127.0.0.1"), false, false, false],
  [match(payload("ip6", "daddr"), "::1"), false, true, false],
  [match(payload("ip", "daddr"), net("127.0.0.0", 8)), false, false, false],
  [match(payload("ip", "daddr"), net("126.0.0.0", 7)), true, false, true],
  [match(meta("nfproto"), "ipv4"), true, false, true],
  [match(meta("nfproto"), "ipv6"), false, true, false],
  [match(meta("protocol"), "ip6"), false, true, false],
  [match(meta("skuid"), 5), true, true, true],
  [{ word: "accept", value: null }, true, true, true],
];

test.each(matches)(
  "couldMatch() goes by protocols, family and loopback: %j",
  (rule, ...expected) => {
    expect([tcp, dns, both].map((flow) => couldMatch([rule], flow))).toEqual(expected);
  },
);

test("couldMatch() needs all of a rule to match", () => {
  const [udp, far] = [match(meta("l4proto"), "udp"), match(meta("oifname"), "eth0")];
  expect([tcp, both].map((flow) => couldMatch([far, udp], flow))).toEqual([false, true]);
});
