// The case table: confs by name, and what each of them means. Every level runs it: pure builds and traces the rules, the
// kernel level loads them and records how iptables-save prints them (test/golden).

import type { Intent } from "../../src/mesh/linkerd/intent.ts";
import type { Family } from "../../src/netfilter/table.ts";
import type { PortRange } from "../../src/redirect/port.ts";

export type Case = {
  readonly name: string;
  /** The plugin conf's `linkerd` object. */
  readonly linkerd: Readonly<Record<string, unknown>>;
  /** Those of a pod that the conf wants redirected. */
  readonly families: readonly Family[];
  /** What the conf means. */
  readonly intent: Intent;
};

/** One case in one family: what one golden file holds. */
export type FamilyCase = { readonly title: string; readonly entry: Case; readonly family: Family };

type Conf = Case["linkerd"];
type Words = readonly (number | string)[];

export const podAddresses: Readonly<Record<Family, string>> = {
  ipv4: "10.1.2.3/24",
  ipv6: "fd00::3/64",
};

/** The least conf that is valid. */
export const leastConf: Conf = {
  "incoming-proxy-port": 4143,
  "outgoing-proxy-port": 4140,
  "proxy-uid": 2102,
};

/** What the least conf means. */
export const leastIntent: Intent = {
  inboundPort: 4143,
  outboundPort: 4140,
  proxyUid: 2102,
  onlyInbound: [],
  excludeInbound: [],
  excludeOutbound: [],
  excludeSubnets: [],
};

// A pod that speaks both families and `ipv6` on, unless the case says otherwise.
function both(name: string, conf: Conf, intent: Partial<Intent>): Case {
  return {
    name,
    linkerd: { ...leastConf, ipv6: true, ...conf },
    families: conf["ipv6"] === false ? ["ipv4"] : ["ipv4", "ipv6"],
    intent: { ...leastIntent, ...intent },
  };
}

function inPod(families: readonly Family[], entry: Case): Case {
  return { ...entry, families };
}

const inbound = (...words: Words): Conf => ({ "inbound-ports-to-ignore": words });
const outbound = (...words: Words): Conf => ({ "outbound-ports-to-ignore": words });
const listed = (...words: Words): Conf => ({ "ports-to-redirect": words });
const subnets = (...words: readonly string[]): Conf => ({ "subnets-to-ignore": words });

/** A port, or both ends of a range. */
type Span = number | readonly [number, number];

function ranges(...spans: readonly Span[]): PortRange[] {
  return spans.map((span) => {
    const [from, to] = typeof span === "number" ? [span, span] : span;
    return { from, to };
  });
}

const passesIn = (...spans: readonly Span[]) => ({ excludeInbound: ranges(...spans) });
const passesOut = (...spans: readonly Span[]) => ({ excludeOutbound: ranges(...spans) });
const only = (...ports: number[]) => ({ onlyInbound: ports });

function passesFrom(...texts: readonly string[]): Partial<Intent> {
  const familyIn = (text: string): Family => (text.includes(":") ? "ipv6" : "ipv4");
  return { excludeSubnets: texts.map((text) => ({ family: familyIn(text), text })) };
}

/** So many single ports from 100 on, none beside another. */
const evens = (count: number) => Array.from({ length: count }, (_, i) => 100 + 2 * i);

/** So many ranges of five ports from 1000 on. */
const tens = (count: number) =>
  Array.from({ length: count }, (_, i): [number, number] => [1000 + 10 * i, 1004 + 10 * i]);

const dashed = (spans: readonly (readonly [number, number])[]) =>
  spans.map(([from, to]) => `${from}-${to}`);

const noIpv6 = { ipv6: false };
const admin = inbound("4191", "4190");
const passesAdmin = passesIn([4190, 4191]);

const everything: Conf = {
  "incoming-proxy-port": 5143,
  "outgoing-proxy-port": 5140,
  "proxy-uid": 3000,
  "proxy-gid": 3001,
  ...listed(8080, 80),
  ...inbound("4191", "4190", "25", "8000-8010"),
  ...outbound("3306", "4567-4568"),
  ...subnets("192.168.0.0/16", "fd00:1::/32", "10.0.0.0/8"),
};

export const cases: readonly Case[] = [
  // families
  inPod(["ipv4"], both("chart default", { ...admin, ...noIpv6 }, passesAdmin)),
  inPod(["ipv4"], both("least conf", noIpv6, {})),
  inPod(["ipv4"], both("ipv4 pod, ipv6 on", {}, {})),
  inPod(["ipv6"], both("ipv6 pod, ipv6 on", {}, {})),
  both("dual pod, ipv6 off", noIpv6, {}),
  both("chart default, dual stack", admin, passesAdmin),
  // the proxy
  both("gid", { "proxy-gid": 2103 }, { proxyGid: 2103 }),
  both("gid -1", { "proxy-gid": -1 }, {}),
  both("gid 0", { "proxy-gid": 0 }, {}),
  both("big uid", { "proxy-uid": 4_294_967_294 }, { proxyUid: 4_294_967_294 }),
  both(
    "openshift uid and gid",
    { "proxy-uid": 1_000_680_000, "proxy-gid": 1_000_680_001 },
    { proxyUid: 1_000_680_000, proxyGid: 1_000_680_001 },
  ),
  both(
    "custom ports",
    { "incoming-proxy-port": 5143, "outgoing-proxy-port": 5140 },
    { inboundPort: 5143, outboundPort: 5140 },
  ),
  both(
    "numbers as strings",
    {
      "incoming-proxy-port": "4143",
      "outgoing-proxy-port": "4140",
      "proxy-uid": "2102",
      "proxy-gid": "2103",
    },
    { proxyGid: 2103 },
  ),
  // listed mode
  both("listed ports", listed(80, 8080), only(80, 8080)),
  both("listed ports, unsorted, doubled", listed("8080", 80, 8080, "443"), only(80, 443, 8080)),
  both(
    "listed and excluded",
    { ...listed(80, 443, 8080), ...inbound("443") },
    { ...only(80, 443, 8080), ...passesIn(443) },
  ),
  // excluded ports and the slots of a multiport
  both("one port", inbound(80), passesIn(80)),
  both("fifteen ports", inbound(...evens(15)), passesIn(...evens(15))),
  both("sixteen ports", inbound(...evens(16)), passesIn(...evens(16))),
  both("thirty ports", inbound(...evens(30)), passesIn(...evens(30))),
  both("one range", inbound("8000-8010"), passesIn([8000, 8010])),
  both("seven ranges and a port", inbound("80", ...dashed(tens(7))), passesIn(80, ...tens(7))),
  both("eight ranges", inbound(...dashed(tens(8))), passesIn(...tens(8))),
  both(
    "range at the slot boundary",
    inbound(...evens(14), "200-210"),
    passesIn(...evens(14), [200, 210]),
  ),
  both(
    "pair at the slot boundary",
    inbound(...evens(14), 201, 200),
    passesIn(...evens(14), [200, 201]),
  ),
  both("overlaps", inbound("80-90", "85-95", "88", "1-1"), passesIn(1, [80, 95])),
  both("adjacent ports", inbound(80, 82, 81), passesIn([80, 82])),
  both("adjacent ranges", inbound("90-99", "80-89"), passesIn([80, 99])),
  both("pairs", inbound(25, 26, 80, 81), passesIn([25, 26], [80, 81])),
  both("range of one", inbound("80-80"), passesIn(80)),
  both(
    "numbers and strings",
    inbound(25, "80", "443-445", 9000),
    passesIn(25, 80, [443, 445], 9000),
  ),
  both("several in one string", inbound("80,443,8000-8010"), passesIn(80, 443, [8000, 8010])),
  both("blanks", inbound(" 80", "90 , 100\t", "\n7000-7001 "), passesIn(80, 90, 100, [7000, 7001])),
  both("unsorted, doubled", inbound("9000", "25", "443", "25", "80"), passesIn(25, 80, 443, 9000)),
  both("first and last port", inbound("65535", "1"), passesIn(1, 65535)),
  both("all inbound from 0", inbound("0-65535"), passesIn([1, 65535])),
  both("all outbound", outbound("1-65535"), passesOut([1, 65535])),
  both("galera", outbound("4567", "4568"), passesOut([4567, 4568])),
  both("sixteen ports outbound", outbound(...evens(16)), passesOut(...evens(16))),
  both(
    "only two ports outbound",
    outbound("1-2999,3001-8080,8082-65535"),
    passesOut([1, 2999], [3001, 8080], [8082, 65535]),
  ),
  // excluded subnets
  both("subnet ipv4", subnets("10.0.0.0/8"), passesFrom("10.0.0.0/8")),
  both("subnet ipv6", subnets("fd00::/8"), passesFrom("fd00::/8")),
  both(
    "subnets of both families",
    subnets("fd00::/8", "10.0.0.0/8"),
    passesFrom("10.0.0.0/8", "fd00::/8"),
  ),
  both(
    "subnets, unsorted, nested",
    subnets("192.168.0.0/16", "10.0.0.0/8", "9.0.0.0/8", "10.0.0.0/16"),
    passesFrom("9.0.0.0/8", "10.0.0.0/8", "10.0.0.0/16", "192.168.0.0/16"),
  ),
  both(
    "host bits",
    subnets("10.1.2.3/9", "fd12:3456::1/20"),
    passesFrom("10.0.0.0/9", "fd12:3000::/20"),
  ),
  both(
    "doubled subnets",
    subnets("10.0.0.0/8", "10.0.0.1/8", "FD00::/8", "fd00:0::/8"),
    passesFrom("10.0.0.0/8", "fd00::/8"),
  ),
  both("all of ipv4", subnets("0.0.0.0/0"), passesFrom("0.0.0.0/0")),
  both("all of ipv6", subnets("::/0"), passesFrom("::/0")),
  both(
    "single addresses",
    subnets("172.17.0.1/32", "fd00::1/128", "::1/128"),
    passesFrom("172.17.0.1/32", "::1/128", "fd00::1/128"),
  ),
  both(
    "mapped ipv6",
    subnets("::ffff:10.0.0.0/104", "::FFFF:c0a8:1/128"),
    passesFrom("::ffff:10.0.0.0/104", "::ffff:192.168.0.1/128"),
  ),
  both(
    "zero groups",
    subnets("2001:db8:0:0:1:0:0:1/128", "2001:db8:0:1:1:1:1:0/112", "0:0:1::/48", "1::/16"),
    passesFrom("0:0:1::/48", "1::/16", "2001:db8::1:0:0:1/128", "2001:db8:0:1:1:1:1:0/112"),
  ),
  both(
    "subnets with blanks",
    subnets(" 10.0.0.0/8", "fd00::/8\n"),
    passesFrom("10.0.0.0/8", "fd00::/8"),
  ),
  both("everything", everything, {
    inboundPort: 5143,
    outboundPort: 5140,
    proxyUid: 3000,
    proxyGid: 3001,
    ...only(80, 8080),
    ...passesIn(25, [4190, 4191], [8000, 8010]),
    ...passesOut(3306, [4567, 4568]),
    ...passesFrom("10.0.0.0/8", "192.168.0.0/16", "fd00:1::/32"),
  }),
];

export const familyCases: readonly FamilyCase[] = cases.flatMap((entry) =>
  entry.families.map((family) => ({ title: `${entry.name} (${family})`, entry, family })),
);

/** The name of the file in test/golden that holds how iptables-save prints the case's rules. */
export function goldenFile({ entry, family }: FamilyCase): string {
  const slug = entry.name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  return `${slug}.${family}.rules`;
}
