// Foreign rules ahead of a jump: which take the traffic, and which are harmless.
import { expect, test } from "vitest";
import { foreignRedirects, shadowing } from "../../src/netfilter/shadow.ts";
import type { Table } from "../../src/netfilter/table.ts";

const chains: Table = {
  chains: new Map([
    ["OUTPUT", []],
    ["EMPTY", []],
    ["COUNTS", ["-A COUNTS -p tcp", "-A COUNTS -j LOG"]],
    ["GOES_BACK", ["-A GOES_BACK -p tcp -j RETURN"]],
    ["TAKES", ["-A TAKES -p udp -j ACCEPT", "-A TAKES -p tcp -j DNAT --to-destination 10.0.0.1"]],
    ["TAKES_UDP", ["-A TAKES_UDP -p udp -j DNAT --to-destination 10.0.0.1"]],
    ["DEEP", ["-A DEEP -j COUNTS", "-A DEEP -j TAKES"]],
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
];

test.each(takers)("shadowing() finds the rule when it is %s", (rule) => {
  expect(shadowing(chains, [rule])).toBe(rule);
});

const harmless = [
  "-A OUTPUT -p tcp",
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
  "-A OUTPUT -j COUNTS",
  "-A OUTPUT -j GOES_BACK",
  "-A OUTPUT -j TAKES_UDP",
  "-A OUTPUT -d 127.0.0.11/32 -j TAKES",
  "-A OUTPUT -j LOOP",
];

test.each(harmless)("shadowing() passes over the rule when it is %s", (rule) => {
  expect(shadowing(chains, [rule])).toBe(undefined);
});

test("shadowing() gives the first that takes the traffic", () => {
  const [first = "", second = ""] = takers;
  expect(shadowing(chains, [...harmless, second, first])).toBe(second);
  expect(shadowing(chains, [])).toBe(undefined);
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
  expect(foreignRedirects(table)).toEqual(sends);
});
