// Records that 0.1.0, and the last version before format 2, wrote on a node: read as today's.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readFormat1 } from "../../src/attachment/format-1.ts";
import { parseRecord } from "../../src/attachment/record-text.ts";
import { linkerdJumps } from "../../src/mesh/linkerd/names.ts";
import type { Family } from "../../src/netfilter/table.ts";
import { inboundJump, outboundJump, rule } from "../lab/states.ts";

const fixture = (name: string) =>
  readFileSync(join(import.meta.dirname, "../fixture/record-1", `${name}.json`), "utf8");

const words = {
  inboundPort: 4143,
  outboundPort: 4140,
  proxyUid: 2102,
  onlyInbound: [],
  excludeInbound: [
    { from: 4190, to: 4191 },
    { from: 4567, to: 4568 },
  ],
  excludeOutbound: [{ from: 4567, to: 4568 }],
  excludeSubnets: [],
};

const rulesetOf = (family: Family) => ({
  family,
  tables: [
    {
      name: "nat",
      chains: [
        { name: "PROXY_INIT_REDIRECT", rules: [rule.excludeInbound, rule.redirectInbound] },
        {
          name: "PROXY_INIT_OUTPUT",
          rules: [rule.proxyUid, rule.loopback, rule.excludeOutbound, rule.redirectOutbound],
        },
      ],
      placed: [
        { hook: "PREROUTING", rule: inboundJump },
        { hook: "OUTPUT", rule: outboundJump },
      ],
      aliases: linkerdJumps,
    },
  ],
  traffic: { protocols: ["tcp"], loopback: false },
});

const both = ["ipv4", "ipv6"].map((family) => rulesetOf(family === "ipv4" ? "ipv4" : "ipv6"));
const base = {
  format: 2,
  state: "applied",
  network: "lab",
  containerId: "c1",
  ifName: "eth0",
  pod: { namespace: "emoji", name: "web" },
  netns: { path: "/run/netns/lab", device: 4, inode: expect.any(Number) },
  boot: expect.any(String),
  sinceBootMs: expect.any(Number),
  profile: "linkerd",
  intent: words,
  rulesets: both,
  settings: [],
  backend: "nft",
  backendReason: "the conf's iptables-mode",
  tools: [],
  warnings: [],
  time: expect.stringMatching(/^2026-12-01T/),
  version: "0.1.0",
};
const { boot: _, sinceBootMs: __, ...bootless } = base;
const setting = "net.netfilter.nf_conntrack_tcp_timeout_close_wait";

const expected: [name: string, record: object][] = [
  ["ipv4", { ...base, rulesets: [rulesetOf("ipv4")], open: ["ipv6"] }],
  ["both-families", { ...base, backend: "legacy" }],
  [
    "close-wait",
    {
      ...base,
      intent: { ...words, closeWaitSeconds: 90 },
      settings: [{ name: setting, value: "90", before: "60" }],
    },
  ],
  ["intended", { ...base, state: "intended" }],
  ["of-0.1.0", bootless],
];

test.each(expected)("a record of format 1 is read: %s", (name, record) => {
  expect(parseRecord(fixture(name))).toEqual(record);
});

test("what the setting was is known also where nothing is wished for it", () => {
  const { closeWaitSeconds, ...intent } = JSON.parse(fixture("close-wait")).intent;
  expect(closeWaitSeconds).toBe(90);
  expect(readFormat1({ ...JSON.parse(fixture("close-wait")), intent })).toMatchObject({
    settings: [{ name: setting, before: "60" }],
  });
});

const broken: [when: string, change: object][] = [
  ["it is of another format", { format: 2 }],
  ["its intent names no family", { intent: { ...words, families: [] } }],
  ["its intent names no known family", { intent: { ...words, families: ["ipx"] } }],
  ["its intent is none", { intent: { ...words, families: ["ipv4"], inboundPort: 0 } }],
  ["its rulesets are missing", { rulesets: undefined }],
  [
    "a hook is unknown",
    {
      rulesets: [{ family: "ipv4", chains: [{ name: "A", hook: "INPUT", jump: "", rules: [] }] }],
    },
  ],
];

test.each(broken)("readFormat1() reads nothing when %s", (_when, change) => {
  expect(readFormat1({ ...JSON.parse(fixture("ipv4")), ...change })).toBe(undefined);
});
