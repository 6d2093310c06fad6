// Real connections: who answers before ADD, and who after. Every exemption stands beside a connection that differs in
// one thing and is redirected, so a test passes neither when nothing is redirected nor when everything is.
import { describe, expect } from "vitest";
import { backends, families } from "../../../src/netfilter/table.ts";
import { linkerd, loadState, type StateName } from "../../lab/states.ts";
import { confOf, named } from "./level.ts";
import { type Connection, test } from "./wire.ts";

/** The least conf of a pod that speaks both families. */
const least = {
  "incoming-proxy-port": 4143,
  "outgoing-proxy-port": 4140,
  "proxy-uid": 2102,
  ipv6: true,
};

type Conf = Readonly<Record<string, unknown>>;
type From = Connection["from"];
type To = Connection["to"];

/** A connection, and who answers: the listener that it was made to, or one of the proxy's. */
type Try = { readonly connection: Connection; readonly answer: "direct" | "4140" | "4143" };

const direct = (from: From, to: To, ...ports: readonly number[]) =>
  ports.map((port): Try => ({ connection: { from, to, port }, answer: "direct" }));
const outbound = (from: From, to: To, ...ports: readonly number[]) =>
  ports.map((port): Try => ({ connection: { from, to, port }, answer: "4140" }));
const inbound = (from: From, to: To, ...ports: readonly number[]) =>
  ports.map((port): Try => ({ connection: { from, to, port }, answer: "4143" }));
const overUdp = (from: From, to: To, port: number): Try[] => [
  { connection: { from, to, port, over: "udp" }, answer: "direct" },
];

const rows: readonly { does: string; conf: Conf; tries: readonly Try[] }[] = [
  {
    does: "sends what goes out to the proxy",
    conf: {},
    tries: [...outbound("app", "peer", 8080, 4143), ...outbound("root", "peer2", 8080)],
  },
  {
    does: "sends what comes in to the proxy",
    conf: {},
    tries: [...inbound("peer", "pod", 8080, 4140), ...inbound("peer", "pod2", 8080)],
  },
  {
    does: "lets the proxy's user out",
    conf: {},
    tries: [...direct("uid 2102", "peer", 8080), ...outbound("uid 2103", "peer", 8080)],
  },
  {
    does: "lets the proxy's group out",
    conf: { "proxy-gid": 2102 },
    tries: [...direct("gid 2102", "peer", 8080), ...outbound("gid 2103", "peer", 8080)],
  },
  {
    does: "lets no group out without proxy-gid",
    conf: {},
    tries: [...direct("uid 2102", "peer", 8080), ...outbound("gid 2102", "peer", 8080)],
  },
  {
    does: "leaves loopback alone, and the pod's own addresses through it",
    conf: {},
    tries: [
      ...direct("app", "localhost", 8080),
      ...direct("app", "pod", 8080),
      ...direct("app", "pod2", 8080),
      ...outbound("app", "peer", 8080),
    ],
  },
  {
    does: "lets excluded ports out",
    conf: { "outbound-ports-to-ignore": ["3306"] },
    tries: [
      ...direct("app", "peer", 3306),
      ...outbound("app", "peer", 3307),
      ...inbound("peer", "pod", 3306),
    ],
  },
  {
    does: "lets excluded ranges of ports out",
    conf: { "outbound-ports-to-ignore": ["5000-5003"] },
    tries: [...direct("app", "peer", 5000, 5001, 5003), ...outbound("app", "peer", 4999, 5004)],
  },
  {
    does: "lets excluded ports in",
    conf: { "inbound-ports-to-ignore": ["4191"] },
    tries: [
      ...direct("peer", "pod", 4191),
      ...inbound("peer", "pod", 4190),
      ...outbound("app", "peer", 4191),
    ],
  },
  {
    does: "lets excluded ranges of ports in",
    conf: { "inbound-ports-to-ignore": ["5000-5003"] },
    tries: [...direct("peer", "pod", 5000, 5001, 5003), ...inbound("peer", "pod", 4999, 5004)],
  },
  {
    does: "lets excluded ports in that take a second rule",
    conf: { "inbound-ports-to-ignore": ["1,3,5,7,9,11,13,15,17,19,21,23,25,27,3306,5000-5001"] },
    tries: [...direct("peer", "pod", 3306, 5000), ...inbound("peer", "pod", 3307, 5003)],
  },
  {
    does: "lets excluded sources in, and does not take them for destinations",
    conf: { "subnets-to-ignore": ["10.9.1.1/32", "fd00:9:1::1/128"] },
    tries: [
      ...direct("peer", "pod2", 8080),
      ...inbound("peer", "pod", 8080),
      ...outbound("app", "peer2", 8080),
    ],
  },
  {
    does: "sends only listed ports to the proxy, and all that goes out",
    conf: { "ports-to-redirect": [8080, "6000"] },
    tries: [
      ...inbound("peer", "pod", 8080, 6000),
      ...direct("peer", "pod", 8081, 6001),
      ...outbound("app", "peer", 8081),
    ],
  },
  {
    does: "lets a listed port in when it is excluded too",
    conf: { "ports-to-redirect": [8080, 6000], "inbound-ports-to-ignore": [6000] },
    tries: [...inbound("peer", "pod", 8080), ...direct("peer", "pod", 6000)],
  },
  {
    does: "leaves UDP alone",
    conf: {},
    tries: [
      ...overUdp("app", "peer", 8080),
      ...overUdp("peer", "pod", 8080),
      ...outbound("app", "peer", 8080),
      ...inbound("peer", "pod", 8080),
    ],
  },
  {
    does: "brings all to the ports that the conf names",
    conf: { "incoming-proxy-port": 4140, "outgoing-proxy-port": 4143 },
    tries: [
      { connection: { from: "app", to: "peer", port: 8080 }, answer: "4143" },
      { connection: { from: "peer", to: "pod", port: 8080 }, answer: "4140" },
    ],
  },
];

/** States that send connections wrong, and where: each is right after ADD. */
const repairs: readonly { state: StateName; wrong: Try; right: Try["answer"] }[] = [
  {
    state: "linkerd-init's rules, interrupted",
    wrong: { connection: { from: "app", to: "peer", port: 8080 }, answer: "direct" },
    right: "4140",
  },
  {
    state: "the inbound jump missing",
    wrong: { connection: { from: "peer", to: "pod", port: 8080 }, answer: "direct" },
    right: "4143",
  },
  {
    state: "chains empty",
    wrong: { connection: { from: "app", to: "peer", port: 8080 }, answer: "direct" },
    right: "4140",
  },
  {
    state: "the proxy's exemption behind the redirect",
    wrong: { connection: { from: "uid 2102", to: "peer", port: 8080 }, answer: "4140" },
    right: "direct",
  },
  {
    state: "a foreign rule that takes the traffic ahead of the jump",
    wrong: { connection: { from: "app", to: "peer", port: 8080 }, answer: "direct" },
    right: "4140",
  },
  {
    state: "a foreign chain that takes the traffic ahead of the jump",
    wrong: { connection: { from: "peer", to: "pod", port: 8080 }, answer: "direct" },
    right: "4143",
  },
];

const podAddresses = ["10.9.0.2/24", "fd00:9::2/64"];

describe.for(backends.map((backend) => ({ backend })))("over $backend", ({ backend }) => {
  test.for(named(rows, ({ does }) => does))(
    "ADD %s when the pod speaks IPv4 and IPv6",
    ([, { conf, tries }], { attachment, wire }) => {
      const ask = (expected: readonly Try[]) => report(wire.connect, expected);
      const control = tries.map((one): Try => ({ ...one, answer: "direct" }));
      expect(ask(control)).toStrictEqual(expectation(control));

      const mode = { ...least, ...conf, "iptables-mode": backend };
      const answer = attachment.call("ADD", confOf({ linkerd: mode, addresses: podAddresses }));
      expect(answer.exitCode).toBe(0);

      expect(ask(tries)).toStrictEqual(expectation(tries));
    },
  );

  test.for(named(repairs, ({ state }) => state))(
    "ADD sends connections right when it finds %s",
    ([, { state, wrong, right }], { attachment, wire }) => {
      const repaired = [{ ...wrong, answer: right }];
      for (const family of families) loadState({ netns: attachment.netns, backend, family }, state);
      expect(report(wire.connect, [wrong])).toStrictEqual(expectation([wrong]));

      const conf = { ...linkerd, "iptables-mode": backend };
      attachment.call("ADD", confOf({ linkerd: conf, addresses: podAddresses }));

      expect(report(wire.connect, repaired)).toStrictEqual(expectation(repaired));
    },
  );

  test("DEL lets everything through again when ADD had redirected it", ({ attachment, wire }) => {
    const mode = { ...least, "iptables-mode": backend };
    const conf = confOf({ linkerd: mode, addresses: podAddresses });
    const redirected = [...outbound("app", "peer", 8080), ...inbound("peer", "pod", 8080)];
    const free = [...direct("app", "peer", 8080), ...direct("peer", "pod", 8080)];
    attachment.call("ADD", conf);
    expect(report(wire.connect, redirected)).toStrictEqual(expectation(redirected));

    attachment.call("DEL", conf);

    expect(report(wire.connect, free)).toStrictEqual(expectation(free));
  });
});

test("ADD leaves IPv6 alone when the conf has ipv6 off", ({ attachment, wire }) => {
  const conf = { ...least, ipv6: false, "iptables-mode": "nft" };
  attachment.call("ADD", confOf({ linkerd: conf, addresses: podAddresses }));

  const connection: Connection = { from: "app", to: "peer", port: 8080 };
  expect(families.map((family) => wire.connect(connection, family))).toStrictEqual([
    "pod 4140",
    "peer 8080",
  ]);
});

/** What is heard, one line a connection. */
function report(
  connect: (connection: Connection, family: "ipv4" | "ipv6") => string,
  tries: readonly Try[],
): string[] {
  return families.flatMap((family) =>
    tries.map((one) => `${family} ${nameOf(one)}: ${connect(one.connection, family)}`),
  );
}

/** What should be heard. */
function expectation(tries: readonly Try[]): string[] {
  return families.flatMap((family) =>
    tries.map((one) => `${family} ${nameOf(one)}: ${listenerOf(one)}`),
  );
}

function nameOf({ connection: { from, to, port, over = "tcp" } }: Try): string {
  return `${over} from ${from} to ${to}:${port}`;
}

function listenerOf({ connection: { to, port }, answer }: Try): string {
  if (answer !== "direct") return `pod ${answer}`;
  return `${to.startsWith("peer") ? "peer" : "pod"} ${port}`;
}
