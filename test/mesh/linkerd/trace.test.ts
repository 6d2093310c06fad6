// The trace itself (lab/trace.ts), since tests of meaning stand on it.
import { expect, test } from "vitest";
import type { Table } from "../../../src/netfilter/table.ts";
import { thrownBy } from "../../fake/thrown.ts";
import { type Packet, packetsAround, trace } from "../../lab/trace.ts";

const output = (...rules: string[]): Table => ({ chains: new Map([["OUTPUT", rules]]) });
const sent: Packet = { chain: "OUTPUT", dport: 80 };

const jumping: Table = {
  chains: new Map([
    ["OUTPUT", ["-A OUTPUT -j A", "-A OUTPUT -p tcp -j REDIRECT --to-ports 2"]],
    ["A", ["-A A -p udp -j RETURN", "-A A -j B", "-A A -p tcp -m tcp --dport 9 -j ACCEPT"]],
    ["B", ["-A B -p tcp -m tcp --dport 7 -j REDIRECT --to-ports 1", "-A B -j RETURN"]],
  ]),
};

const walks: [packet: Packet, verdict: string][] = [
  [{ chain: "OUTPUT", dport: 7 }, "REDIRECT 1"],
  [{ chain: "OUTPUT", dport: 8 }, "REDIRECT 2"],
  [{ chain: "OUTPUT", dport: 9 }, "ACCEPT"],
  [{ chain: "OUTPUT", dport: 9, proto: "udp" }, "ACCEPT"],
  [{ chain: "PREROUTING", dport: 7 }, "ACCEPT"],
];

test.each(walks)("trace() walks jumps and returns for %j: %s", (packet, verdict) => {
  expect(trace(jumping, packet)).toBe(verdict);
});

const unknown: [rule: string, word: string][] = [
  ["-A OUTPUT -p tcp -j DNAT --to-destination 10.0.0.1", "match --to-destination 10.0.0.1"],
  ["-A OUTPUT -d 10.0.0.0/8 -j RETURN", "match -d 10.0.0.0/8"],
  ["-A OUTPUT ! -o lo -j RETURN", "match ! -o"],
  ["-A OUTPUT -m mark --mark 0x1 -j RETURN", "match -m mark"],
  ["-A OUTPUT -g A", "match -g A"],
  ["-A OUTPUT -j LOG", "target LOG"],
];

test.each(unknown)("trace() throws at %j", (rule, word) => {
  const error = `Error: trace does not know the ${word}`;
  expect(thrownBy(() => trace(output(rule), sent))).toBe(error);
});

test("trace() throws when a packet without owner comes to an owner match", () => {
  const rule = "-A PREROUTING -m owner --uid-owner 1 -j RETURN";
  const table = { chains: new Map([["PREROUTING", [rule]]]) };
  const error = "Error: the kernel refuses an owner match off OUTPUT";
  expect(thrownBy(() => trace(table, { chain: "PREROUTING", dport: 80 }))).toBe(error);
});

test("packetsAround() stands at and beside each port, owner and subnet that rules name", () => {
  const rules = ["-p tcp -m multiport --dports 80,90:95", "--uid-owner 5", "-s 10.0.0.0/31"];
  const packets = packetsAround(rules, "ipv4");
  const values = (key: keyof Packet) => [...new Set(packets.map((packet) => packet[key]))];
  expect(values("dport")).toEqual([1, 79, 80, 81, 89, 90, 91, 94, 95, 96, 443, 65535]);
  expect(values("uid")).toEqual([0, 4, 5, 6, 1000, undefined]);
  expect(values("src")).toEqual([
    undefined,
    "192.0.2.1",
    "127.0.0.1",
    "9.255.255.255",
    "10.0.0.0",
    "10.0.0.1",
    "10.0.0.2",
  ]);
});

test("packetsAround() knows every spelling of an IPv6 subnet", () => {
  const rules = ["-s ::ffff:10.0.0.0/127", "-s fd00::/8", "-s ::1/128"];
  const sources = packetsAround(rules, "ipv6").map(({ src }) => src);
  expect([...new Set(sources)].filter((src) => src !== undefined)).toEqual([
    "2001:db8::1",
    "::1",
    "0:0:0:0:0:ffff:9ff:ffff",
    "0:0:0:0:0:ffff:a00:0",
    "0:0:0:0:0:ffff:a00:1",
    "0:0:0:0:0:ffff:a00:2",
    "fcff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "fd00:0:0:0:0:0:0:0",
    "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "fe00:0:0:0:0:0:0:0",
    "0:0:0:0:0:0:0:0",
    "0:0:0:0:0:0:0:1",
    "0:0:0:0:0:0:0:2",
  ]);
});
