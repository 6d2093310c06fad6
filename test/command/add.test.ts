// ADD over the fakes: from every state to the ruleset, in one backend, with a record; and what it says when it cannot.
import { describe, expect, test } from "vitest";
import { linkerdJumps } from "../../src/mesh/linkerd/names.ts";
import type { Backend } from "../../src/netfilter/table.ts";
import { version } from "../../src/version.ts";
import { cni, loadState, own, prevResult, saved, succeeded, withLinkerd } from "../fake/call.ts";
import { epochMs, makeWorld, netnsPath } from "../fake/world.ts";
import { podAddresses } from "../lab/case.ts";
import {
  complete,
  foreignLines,
  inboundJump,
  outboundJump,
  rule,
  stateNames,
} from "../lab/states.ts";

const backends: readonly Backend[] = ["nft", "legacy"];
const families = ["ipv4", "ipv6"] as const;
const result = succeeded(JSON.stringify(prevResult));
const pod = { namespace: "emoji", name: "web" };

const told = { command: "ADD", containerId: "c0ffee", ifName: "eth0", pod };
const done = (backend: Backend, changed: readonly string[], execs: number) => ({
  ...{ level: "info", message: "done", ...told, families, backend, changed, execs },
  durationMs: 0,
});

test("ADD on a fresh netns loads both families with one child, and keeps a record", async () => {
  const world = makeWorld();
  expect(await cni(world, "ADD")).toEqual(result);
  expect(families.map((family) => own(world, "nft", family))).toEqual([complete, complete]);
  expect(world.lines).toEqual([done("nft", families, 1)]);
  expect(world.open).toEqual(new Set());
  const nat = {
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
  };
  expect(world.store.records.get("net,c0ffee,eth0.json")).toEqual({
    format: 2,
    state: "applied",
    network: "net",
    containerId: "c0ffee",
    ifName: "eth0",
    pod,
    netns: { path: netnsPath, device: 4, inode: 1 },
    boot: "first",
    sinceBootMs: expect.any(Number),
    profile: "linkerd",
    intent: {
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
    },
    rulesets: families.map((family) => ({
      family,
      tables: [nat],
      traffic: { protocols: ["tcp"], loopback: false },
    })),
    backend: "nft",
    backendReason: "the conf's iptables-mode",
    settings: [],
    tools: families.map((family) => {
      const program = family === "ipv4" ? "/sbin/iptables-nft" : "/sbin/ip6tables-nft";
      const version = "1.8.9 (nf_tables)";
      return { family, restore: `${program}-restore`, save: `${program}-save`, version };
    }),
    warnings: [],
    time: new Date(epochMs).toISOString(),
    version,
  });
});

test("ADD keeps in the record what it warned of", async () => {
  const world = makeWorld();
  await cni(world, "ADD", withLinkerd({ ipv6: false }));
  const message = "the pod has IPv6 addresses and linkerd.ipv6 is off: they pass the proxy by";
  expect(world.store.records.get("net,c0ffee,eth0.json")?.warnings).toEqual([
    `${message}: ${JSON.stringify({ addresses: [podAddresses.ipv4, podAddresses.ipv6] })}`,
  ]);
});

describe.each(backends)("through %s", (backend) => {
  const through = withLinkerd({ "iptables-mode": backend });

  test.each(stateNames)("ADD ends right, once and twice, from: %s", async (name) => {
    const world = makeWorld();
    loadState(world, backend, name);
    const foreign = families.map((family) => foreignLines(saved(world, backend, family)));

    expect(await cni(world, "ADD", through)).toEqual(result);
    for (const family of families) expect(own(world, backend, family)).toEqual(complete);
    expect(families.map((family) => foreignLines(saved(world, backend, family)))).toEqual(foreign);

    world.iptables.written.length = 0;
    world.lines.length = 0;
    expect(await cni(world, "ADD", through)).toEqual(result);
    expect(world.iptables.written).toEqual([]);
    expect(world.lines).toEqual([done(backend, [], 1)]);
  });
});
