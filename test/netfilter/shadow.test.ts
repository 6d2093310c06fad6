// Foreign rules ahead of a jump: which take the traffic, and which are harmless.
import { expect, test } from "vitest";
import { foreignRedirects, matchesTraffic, shadowing } from "../../src/netfilter/shadow.ts";
import type { Table, Traffic } from "../../src/netfilter/table.ts";
import { tcp } from "../lab/rulesets.ts";

const chains: Table = {
  chains: new Map([
    ["OUTPUT", []],
    ["EMPTY", []],
    ["MARKS", ["-A MARKS -p udp", "-A MARKS -j LOG"]],
    ["COUNTS", ["-A COUNTS -p tcp"]],
    ["ULOG", ["-A ULOG -j ACCEPT"]],
    ["NFLOG", []],
    ["GOES_ON", ["-A GOES_ON -g EMPTY", "-A GOES_ON -g GOES_BACK"]],
    ["GOES_BACK", ["-A GOES_BACK -p tcp -j RETURN"]],
    ["TAKES", ["-A TAKES -p udp -j ACCEPT", "-A TAKES -p tcp -j DNAT --to-destination 10.0.0.1"]],
    ["TAKES_UDP", ["-A TAKES_UDP -p udp -j DNAT --to-destination 10.0.0.1"]],
    ["DEEP", ["-A DEEP -j MARKS", "-A DEEP -j TAKES"]],
    ["LOOP", ["-A LOOP -j LOOP_TOO"]],
    ["LOOP_TOO", ["-A LOOP_TOO -j LOOP"]],
  ]),
};

const takers = [
  "-A OUTPUT -j ACCEPT",
  "-A OUTPUT -p tcp -j ACCEPT",
  "-A OUTPUT -p tcp -m tcp --dport 443 -j RETURN",
  "-A OUTPUT -d 10.0.0.0/8 -p tcp -j DNAT --to-destination 10.0.0.1",
  "-A OUTPUT ! -d 127.0.0.1/32 -p tcp -j REDIRECT --to-ports 1",
  "-A OUTPUT ! -o lo -p tcp -j REDIRECT --to-ports 1",
  "-A OUTPUT ! -p udp -j ACCEPT",
  "-A OUTPUT -m owner --uid-owner 1000 -j ACCEPT",
  "-A OUTPUT -j UNKNOWN_TARGET",
  "-A OUTPUT -j TAKES",
  "-A OUTPUT -g TAKES",
  "-A OUTPUT -j DEEP",
  '-A OUTPUT -m comment --comment "-p udp" -j ACCEPT',
  // The policy takes what comes to the end of a chain that was gone to.
  "-A OUTPUT -g EMPTY",
  "-A OUTPUT -g GOES_BACK",
  "-A OUTPUT -p tcp -g MARKS",
  // Values that look like options.
  '-A OUTPUT -m string ! --string "-p" --algo bm -j ACCEPT',
  '-A OUTPUT -m string --string "x" --algo bm -m comment --comment -o -j ACCEPT',
  '-A OUTPUT -m comment --comment "-o" -m comment --comment lo -j ACCEPT',
  "-A OUTPUT -m recent --set --name -p --mask 255.255.255.255 --rsource -j ACCEPT",
  "-A OUTPUT -m recent --set --name x -p udp -j ACCEPT",
  "-A OUTPUT -j LOG --log-prefix -j -j ACCEPT",
  // What an inverted interface is followed by may be part of its name.
  "-A OUTPUT ! -o a -p udp -j ACCEPT",
  "-A OUTPUT ! -o a -j EMPTY",
  // Chains that are named like targets.
  "-A OUTPUT -j ULOG",
  // nft's own verdict maps are printed so.
  "-A OUTPUT -p tcp",
  "-A OUTPUT",
  "-A OUTPUT -m limit --limit 1/sec",
  "-A OUTPUT -p tcp -j TRACE",
  "-A OUTPUT -j COUNTS",
  // Not, or not only, loopback.
  "-A OUTPUT -d 127.0.0.0/7 -j ACCEPT",
  "-A OUTPUT -d 127.0.0.0/127.0.0.0 -j ACCEPT",
  "-A OUTPUT -d 127.0.0.0/0 -j ACCEPT",
  "-A OUTPUT -d ::1/64 -j ACCEPT",
  "-A OUTPUT ! -d ::1/128 -j ACCEPT",
  "-A OUTPUT -s 127.0.0.1/32 -j ACCEPT",
  "-A OUTPUT -o lo+ -j ACCEPT",
  "-A OUTPUT -p 6 -j ACCEPT",
  "-A OUTPUT -p all -j ACCEPT",
  // No rule of iptables'.
  "-A OUTPUT -p udp -j ACCEPT -j ACCEPT",
  '-A OUTPUT -m comment --comment "x',
  "-A OUTPUT -o lo -o eth0 -j ACCEPT",
  "-A OUTPUT -p udp -p tcp -j ACCEPT",
  "-A OUTPUT -o -p -j ACCEPT",
  "-A OUTPUT\u00a0-p udp -j ACCEPT",
];

test.each(takers)("shadowing() finds the rule when it is %s", (rule) => {
  expect(shadowing(chains, [rule], tcp)).toBe(rule);
});

const harmless = [
  "-A OUTPUT -p udp",
  "-A OUTPUT -j LOG --log-prefix x",
  "-A OUTPUT -j MARK --set-xmark 0x1/0xffffffff",
  "-A OUTPUT -p udp -j ACCEPT",
  "-A OUTPUT -p udp -m udp --dport 53 -j REDIRECT --to-ports 5353",
  "-A OUTPUT -p icmp -j ACCEPT",
  "-A OUTPUT ! -p tcp -j ACCEPT",
  "-A OUTPUT -o lo -j ACCEPT",
  "-A OUTPUT -d 127.0.0.11/32 -j DNAT --to-destination 127.0.0.11:4000",
  "-A OUTPUT -d 127.0.0.0/8 -j RETURN",
  "-A OUTPUT -d ::1/128 -j RETURN",
  "-A OUTPUT -j EMPTY",
  "-A OUTPUT -j MARKS",
  "-A OUTPUT -j NFLOG",
  "-A OUTPUT -j GOES_ON",
  "-A OUTPUT -j GOES_BACK",
  "-A OUTPUT ! -p 6 -j ACCEPT",
  "-A OUTPUT -f -p udp -j ACCEPT",
  "-A OUTPUT -d 127.0.0.1/255.255.255.0 -o lo -j ACCEPT",
  "-A OUTPUT -j TAKES_UDP",
  "-A OUTPUT -d 127.0.0.11/32 -j TAKES",
  "-A OUTPUT -j LOOP",
];

test.each(harmless)("shadowing() passes over the rule when it is %s", (rule) => {
  expect(shadowing(chains, [rule], tcp)).toBe(undefined);
});

// Three jumps in each of so many chains: 3^40 ways through them.
test("shadowing() walks each chain once", () => {
  const names = Array.from({ length: 40 }, (_, i) => `C${i}`);
  const jumps = (name: string, i: number) =>
    Array.from({ length: 3 }, () => `-A ${name} -j C${i + 1}`);
  const fan = (end: string): Table => {
    const all = names.map((name, i) => [name, jumps(name, i)] as const);
    return { chains: new Map([...all, ["C40", [end]] as const]) };
  };
  const ahead = names.map((name) => `-A OUTPUT -j ${name}`);
  expect(shadowing(fan("-A C40 -p udp -j ACCEPT"), ahead, tcp)).toBe(undefined);
  expect(shadowing(fan("-A C40 -j ACCEPT"), ahead, tcp)).toBe("-A OUTPUT -j C0");
});

test("shadowing() walks chains that are thousands deep", () => {
  const deep = Array.from({ length: 30_000 }, (_, i) => {
    return [`D${i}`, [`-A D${i} -j ${i === 29_999 ? "DROP" : `D${i + 1}`}`]] as const;
  });
  const table: Table = { chains: new Map(deep) };
  expect(shadowing(table, ["-A OUTPUT -j D0"], tcp)).toBe("-A OUTPUT -j D0");
});

test("shadowing() gives the first that takes the traffic", () => {
  const [first = "", second = ""] = takers;
  expect(shadowing(chains, [...harmless, second, first], tcp)).toBe(second);
  expect(shadowing(chains, [], tcp)).toBe(undefined);
});

test("foreignRedirects() gives what sends TCP elsewhere, from whichever foreign chain", () => {
  const sends = [
    "-A OUTPUT -p tcp -j REDIRECT --to-ports 2",
    "-A A -j DNAT --to-destination 1.2.3.4",
  ];
  const table: Table = {
    chains: new Map([
      ["PREROUTING", ["-A PREROUTING -p udp -j REDIRECT --to-ports 1", "-A PREROUTING -j ACCEPT"]],
      ["OUTPUT", ["-A OUTPUT -o lo -j REDIRECT --to-ports 1", ...sends.slice(0, 1)]],
      ["A", sends.slice(1)],
      ["PROXY_INIT_OUTPUT", ["-A PROXY_INIT_OUTPUT -p tcp -j REDIRECT --to-ports 4"]],
    ]),
  };
  expect(foreignRedirects(table, ["PROXY_INIT_OUTPUT"], tcp)).toEqual(sends);
});

const dns: Traffic = { protocols: ["udp"], loopback: true };
const byTraffic: [rule: string, ofTcp: boolean, ofDns: boolean][] = [
  ["-A OUTPUT -p udp -m udp --dport 53 -j ACCEPT", false, true],
  ["-A OUTPUT -p 17 -j ACCEPT", false, true],
  ["-A OUTPUT -p tcp -j ACCEPT", true, false],
  ["-A OUTPUT ! -p udp -j ACCEPT", true, false],
  ["-A OUTPUT ! -p tcp -j ACCEPT", false, true],
  ["-A OUTPUT -o lo -j ACCEPT", false, true],
  ["-A OUTPUT -d 127.0.0.11/32 -j DNAT --to-destination 127.0.0.11:4000", false, true],
  ["-A OUTPUT -d ::1/128 -j RETURN", false, true],
  ["-A OUTPUT -p icmp -j ACCEPT", false, false],
  ["-A OUTPUT -j TAKES_UDP", false, true],
  ["-A OUTPUT -j CT --zone 1", true, true],
];

test.each(byTraffic)(
  "shadowing() and matchesTraffic() go by the traffic: %s",
  (rule, ofTcp, ofDns) => {
    const shadows = [tcp, dns].map((traffic) => shadowing(chains, [rule], traffic) === rule);
    expect(shadows).toEqual([ofTcp, ofDns]);
  },
);

test("matchesTraffic() asks for each protocol of the traffic, and cannot tell of what it cannot read", () => {
  const both: Traffic = { protocols: ["tcp", "udp"], loopback: false };
  const rules = ["-p tcp", "-p udp", "! -p tcp", "! -p udp", "-p icmp", "-p udp -p tcp"];
  const matched = rules.filter((rule) => matchesTraffic(`-A OUTPUT ${rule} -j ACCEPT`, both));
  expect(matched).toEqual(["-p tcp", "-p udp", "! -p tcp", "! -p udp", "-p udp -p tcp"]);
});
