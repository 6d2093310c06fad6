// Rules that take connections past the proxy from outside of our chains: real connections show that they do, CHECK names
// each, and is content again once it is gone. Beside them, rules of the same kinds that take nothing, and no drift.
import { describe, expect } from "vitest";
import { backends, type Family } from "../../../src/netfilter/table.ts";
import type { LabNetns } from "../../lab/netns.ts";
import { inboundJump, outboundJump } from "../../lab/states.ts";
import { stateConf } from "./level.ts";
import { type Connection, test, type Wire } from "./wire.ts";

const ways = {
  out: {
    connection: { from: "app", to: "peer", port: 8080 },
    proxy: "pod 4140",
    direct: "peer 8080",
  },
  in: {
    connection: { from: "peer", to: "pod", port: 8080 },
    proxy: "pod 4143",
    direct: "pod 8080",
  },
} as const satisfies Record<string, { connection: Connection; proxy: string; direct: string }>;

type Way = keyof typeof ways;

/** A rule of someone's: how it is written and taken out (FAMILY and NFT stand for the family's words), what it does. */
type Row = {
  readonly what: string;
  readonly write: readonly (readonly string[])[];
  readonly undo: readonly string[];
  readonly way: Way;
  /** Who answers while it is there. */
  readonly answer: string;
  /** What CHECK says of it, besides the kind and the family. */
  readonly drifts?: readonly string[];
};

const table = (chain: string, rule: string) => [
  ["nft", `add table NFT x; add chain NFT x c { ${chain} }; add rule NFT x c ${rule}`],
];
const noTable = ["nft", "delete table NFT x"];
const redirects = "tcp dport 8080 redirect to :4999";
const ahead = (place: string, word: string) => {
  const found = `nft's chain c in table NFT x (${place}) takes the traffic before it: ${word}`;
  return `nat OUTPUT): expected ${outboundJump}; found ${found}`;
};

// Both ways: answers to what went past conntrack would be taken for connections that come in.
const bothWays = (priority: number) => [
  ["nft", `add table NFT x`],
  ...["output", "prerouting"].map((hook) => [
    "nft",
    `add chain NFT x ${hook} { type filter hook ${hook} priority ${priority}; }; add rule NFT x ${hook} meta l4proto tcp notrack`,
  ]),
];
const untracked = [inboundJump, outboundJump].map((jump) => {
  const [hook, name] = jump === inboundJump ? ["PREROUTING", "prerouting"] : ["OUTPUT", "output"];
  return `nat ${hook}): expected ${jump}; found nft's chain ${name} in table NFT x (filter, ${name}, priority -200) takes the traffic before it: notrack`;
});

const rows: readonly Row[] = [
  {
    what: "a nat chain of nft's own ahead of ours",
    write: table("type nat hook output priority -110;", redirects),
    undo: noTable,
    way: "out",
    answer: "pod 4999",
    drifts: [ahead("nat, output, priority -110", "redirect")],
  },
  {
    what: "a nat chain of nft's own at our priority",
    write: table("type nat hook output priority -100;", redirects),
    undo: noTable,
    way: "out",
    answer: "pod 4999",
    drifts: [ahead("nat, output, priority -100", "redirect")],
  },
  {
    what: "a nat chain of nft's own behind ours",
    write: table("type nat hook output priority -99;", redirects),
    undo: noTable,
    way: "out",
    answer: ways.out.proxy,
  },
  {
    what: "a nat chain of nft's own ahead of ours that only accepts",
    write: table("type nat hook output priority -110;", "tcp dport 8080 accept"),
    undo: noTable,
    way: "out",
    answer: ways.out.proxy,
  },
  {
    what: "a nat chain of nft's own ahead of ours for UDP",
    write: table("type nat hook output priority -110;", "udp dport 8080 redirect to :4999"),
    undo: noTable,
    way: "out",
    answer: ways.out.proxy,
  },
  {
    what: "a notrack of nft's own for what goes out",
    write: bothWays(-200),
    undo: noTable,
    way: "out",
    answer: ways.out.direct,
    drifts: untracked.toReversed(),
  },
  {
    what: "a notrack of nft's own for what comes in",
    write: bothWays(-200),
    undo: noTable,
    way: "in",
    answer: ways.in.direct,
    drifts: untracked.toReversed(),
  },
  {
    what: "a notrack of nft's own that comes too late",
    write: bothWays(-199),
    undo: noTable,
    way: "out",
    answer: ways.out.proxy,
  },
];

describe.for(backends.map((backend) => ({ backend })))("over $backend", ({ backend }) => {
  const iptables = (...rule: string[]) => [`FAMILYtables-${backend}`, "-t", "raw", ...rule];
  const notrack = (...match: string[]) =>
    ["PREROUTING", "OUTPUT"].map((chain) =>
      iptables("-A", chain, ...match, "-j", "CT", "--notrack"),
    );
  const bothNamed = ["PREROUTING", "OUTPUT"].map((chain) => {
    return `raw ${chain}): found -A ${chain} -p tcp -j CT --notrack`;
  });
  const inRaw: readonly Row[] = [
    {
      what: "a notrack in raw for what goes out",
      write: notrack("-p", "tcp"),
      undo: iptables("-F"),
      way: "out",
      answer: ways.out.direct,
      drifts: bothNamed,
    },
    {
      what: "a notrack in raw for what comes in",
      write: notrack("-p", "tcp"),
      undo: iptables("-F"),
      way: "in",
      answer: ways.in.direct,
      drifts: bothNamed,
    },
    {
      what: "a notrack in raw for UDP",
      write: notrack("-p", "udp"),
      undo: iptables("-F"),
      way: "out",
      answer: ways.out.proxy,
    },
  ];

  for (const family of ["ipv4", "ipv6"] as const) {
    test.for([...inRaw, ...rows].map((row) => [row.what, row] as const))(
      `${family}: %s`,
      ([, row], { attachment, wire }) => {
        const { call, netns } = attachment;
        const { connection, proxy } = ways[row.way];
        const conf = stateConf(backend, "ipv4", "ipv6");
        call("ADD", conf);
        expect(wire.connect(connection, family)).toBe(proxy);

        for (const command of row.write) run(netns, command, family);
        expect(wire.connect(connection, family)).toBe(row.answer);
        const lines = (row.drifts ?? []).map((drift) => `shadowed-jump (${family} ${drift}`);
        expect(detailsOf(call("CHECK", conf).stdout)).toEqual(
          lines.map((line) => inWords(line, family)),
        );

        run(netns, row.undo, family);
        expect(wire.connect(connection, family)).toBe(proxy);
        expect(call("CHECK", conf)).toMatchObject({ exitCode: 0, stdout: "" });
      },
    );
  }

  test("a chain of both families is named for each", ({ attachment, wire }) => {
    const { call, netns } = attachment;
    const conf = stateConf(backend, "ipv4", "ipv6");
    call("ADD", conf);
    netns.run("nft", [
      `add table inet x; add chain inet x c { type nat hook output priority -110; }; add rule inet x c ${redirects}`,
    ]);

    expect(answers(wire)).toEqual(["pod 4999", "pod 4999"]);
    const line = ahead("nat, output, priority -110", "redirect").replace("NFT", "inet");
    expect(detailsOf(call("CHECK", conf).stdout)).toEqual([
      `shadowed-jump (ipv4 ${line}`,
      `shadowed-jump (ipv6 ${line}`,
    ]);
  });

  test("a tproxy of nft's own, also behind ours", ({ attachment }) => {
    const { call, netns } = attachment;
    const conf = stateConf(backend, "ipv4");
    call("ADD", conf);
    netns.run("nft", [
      "add table ip x; add chain ip x c { type filter hook prerouting priority 0; }; add rule ip x c meta l4proto tcp tproxy to :4999",
    ]);

    expect(detailsOf(call("CHECK", conf).stdout)).toMatchObject([
      expect.stringMatching(/^shadowed-jump \(ipv4 nat PREROUTING\): .* nft's chain c .*: tproxy$/),
    ]);
  });

  test("a TPROXY in mangle", ({ attachment }) => {
    const { call, netns } = attachment;
    const conf = stateConf(backend, "ipv4");
    call("ADD", conf);
    const rule = ["-A", "PREROUTING", "-p", "tcp", "-j", "TPROXY", "--on-port", "4999"];
    netns.run(`iptables-${backend}`, ["-t", "mangle", ...rule]);

    expect(detailsOf(call("CHECK", conf).stdout)).toMatchObject([
      expect.stringMatching(
        /^shadowed-jump \(ipv4 mangle PREROUTING\): found -A PREROUTING .*TPROXY/,
      ),
    ]);
  });
});

test("a nat table that is switched off", ({ attachment, wire }) => {
  const { call, netns } = attachment;
  const conf = stateConf("nft", "ipv4", "ipv6");
  call("ADD", conf);
  netns.run("nft", ["add table ip nat { flags dormant; }"]);

  expect(answers(wire)).toEqual([ways.out.direct, ways.out.proxy]);
  expect(detailsOf(call("CHECK", conf).stdout)).toEqual([
    "dormant-table (ipv4 nat): found table ip nat is dormant: its rules are there, and none of them acts",
  ]);

  netns.run("nft", ["add table ip nat"]);
  expect(answers(wire)).toEqual([ways.out.proxy, ways.out.proxy]);
  expect(call("CHECK", conf)).toMatchObject({ exitCode: 0, stdout: "" });
});

test("a rule of nft's own ahead of the jump, which save shows in part", ({ attachment, wire }) => {
  const { call, netns } = attachment;
  const conf = stateConf("nft", "ipv4", "ipv6");
  call("ADD", conf);
  netns.run("nft", ["insert rule ip nat OUTPUT tcp dport vmap { 8080 : accept }"]);

  expect(answers(wire)).toEqual([ways.out.direct, ways.out.proxy]);
  expect(detailsOf(call("CHECK", conf).stdout)).toContain(
    "unverifiable (ipv4 nat): found rules of nft's own, which iptables-save shows in part, in chain OUTPUT",
  );
});

function answers(wire: Wire): string[] {
  return [wire.connect(ways.out.connection, "ipv4"), wire.connect(ways.out.connection, "ipv6")];
}

function run(netns: LabNetns, command: readonly string[], family: Family): void {
  const [file = "", ...args] = command.map((word) => inWords(word, family));
  netns.run(file, args);
}

function inWords(text: string, family: Family): string {
  const [short, nft] = family === "ipv4" ? ["ip", "ip"] : ["ip6", "ip6"];
  return text.replace(/^FAMILY/, short).replaceAll("NFT", nft);
}

/** The drifts of CHECK's answer; none where it is content. */
function detailsOf(stdout: string): string[] {
  if (stdout === "") return [];
  const answer: { code: number; details: string } = JSON.parse(stdout);
  expect(answer.code).toBe(100);
  return answer.details.split("\n");
}
