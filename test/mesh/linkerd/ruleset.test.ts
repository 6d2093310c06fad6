// The builder of rules: how they are spelt (golden files, recorded from iptables-save by the kernel level), what they mean
// (traces), and what holds for each of them.
import { readFileSync } from "node:fs";
import { BlockList } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Intent } from "../../../src/mesh/linkerd/intent.ts";
import { inboundChain, outboundChain, ownChains } from "../../../src/mesh/linkerd/names.ts";
import { buildRuleset, buildRulesets } from "../../../src/mesh/linkerd/ruleset.ts";
import { families, type Ruleset } from "../../../src/netfilter/table.ts";
import { familyOf } from "../../../src/redirect/cidr.ts";
import { cases, familyCases, goldenFile, leastIntent } from "../../lab/case.ts";
import { type LedChain, ledChains, natIn } from "../../lab/rulesets.ts";
import { type Packet, packetsAround, trace, tracer } from "../../lab/trace.ts";

const comment = (text: string) => `-m comment --comment "sluice/${text}"`;

test("buildRuleset() spells inbound and outbound chain with their jumps when nothing is excluded", () => {
  expect(buildRuleset(leastIntent, "ipv4")).toEqual({
    family: "ipv4",
    tables: [
      {
        name: "nat",
        chains: [
          {
            name: "PROXY_INIT_REDIRECT",
            rules: [
              `-A PROXY_INIT_REDIRECT -p tcp ${comment("redirect-inbound")} -j REDIRECT --to-ports 4143`,
            ],
          },
          {
            name: "PROXY_INIT_OUTPUT",
            rules: [
              `-A PROXY_INIT_OUTPUT -m owner --uid-owner 2102 ${comment("proxy-uid")} -j RETURN`,
              `-A PROXY_INIT_OUTPUT -o lo ${comment("loopback")} -j RETURN`,
              `-A PROXY_INIT_OUTPUT -p tcp ${comment("redirect-outbound")} -j REDIRECT --to-ports 4140`,
            ],
          },
        ],
        placed: [
          {
            hook: "PREROUTING",
            rule: `-A PREROUTING ${comment("inbound")} -j PROXY_INIT_REDIRECT`,
          },
          { hook: "OUTPUT", rule: `-A OUTPUT ${comment("outbound")} -j PROXY_INIT_OUTPUT` },
        ],
        aliases: [
          '-A PREROUTING -m comment --comment "proxy-init/install-proxy-init-prerouting" -j PROXY_INIT_REDIRECT',
          '-A OUTPUT -m comment --comment "proxy-init/install-proxy-init-output" -j PROXY_INIT_OUTPUT',
        ],
      },
    ],
    traffic: { protocols: ["tcp"], loopback: false },
  });
});

test("buildRulesets() gives one ruleset a family, each with its own subnets", () => {
  const intent: Intent = {
    ...leastIntent,
    excludeSubnets: [
      { family: "ipv4", text: "10.0.0.0/8" },
      { family: "ipv6", text: "::/0" },
    ],
  };
  const excluding = buildRulesets(intent, families).map((ruleset) => [
    ruleset.family,
    natIn(ruleset)
      .chains.flatMap(({ rules }) => rules)
      .filter((rule) => rule.includes("exclude-subnet")),
  ]);
  expect(excluding).toEqual([
    ["ipv4", [`-A PROXY_INIT_REDIRECT -s 10.0.0.0/8 ${comment("exclude-subnet")} -j RETURN`]],
    ["ipv6", [`-A PROXY_INIT_REDIRECT ${comment("exclude-subnet")} -j RETURN`]],
  ]);
});

test("goldenFile() names each case's file alone", () => {
  const files = familyCases.map(goldenFile);
  expect(files.filter((file, at) => files.indexOf(file) !== at)).toEqual([]);
});

test.each(familyCases)("buildRuleset() spells as iptables-save does: $title", (familyCase) => {
  const { entry, family } = familyCase;
  const golden = join(import.meta.dirname, "../../golden", goldenFile(familyCase));
  expect(asSaved(buildRuleset(entry.intent, family))).toBe(readFileSync(golden, "utf8"));
});

// Builtin chains come first, then own ones by name.
function asSaved(ruleset: Ruleset): string {
  const chains = ledChains(ruleset);
  const byName = chains.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const jumps = ["PREROUTING", "OUTPUT"].flatMap((hook) =>
    chains.filter((own) => own.hook === hook).map(({ jump }) => jump),
  );
  const declared = byName.map(({ name }) => `:${name} - [0:0]`);
  const lines = [...declared, ...jumps, ...byName.flatMap(({ rules }) => rules)];
  return lines.map((line) => `${line}\n`).join("");
}

test.each(familyCases)("buildRuleset() means what the intent says: $title", ({ entry, family }) => {
  const ruleset = buildRuleset(entry.intent, family);
  const goes = tracer(ruleset);
  const wrong = packetsAround(rulesIn(ruleset), family)
    .map((packet) => ({ packet, goes: goes(packet), meant: meant(entry.intent, packet) }))
    .filter((seen) => seen.goes !== seen.meant);
  expect(wrong).toEqual([]);
});

// The intent, read as plainly as it can be.
function meant(intent: Intent, packet: Packet): string {
  if (packet.proto === "udp") return "ACCEPT";
  return packet.chain === "OUTPUT" ? meantSent(intent, packet) : meantCame(intent, packet);
}

function meantSent(intent: Intent, { dport, out, uid, gid }: Packet): string {
  const own = uid === intent.proxyUid || (gid !== undefined && gid === intent.proxyGid);
  if (own || out === "lo" || isIn(intent.excludeOutbound, dport)) return "ACCEPT";
  return `REDIRECT ${intent.outboundPort}`;
}

function meantCame(intent: Intent, { dport, src = "" }: Packet): string {
  const excluded = new BlockList();
  const subnets = intent.excludeSubnets.filter(({ family }) => family === familyOf(src));
  for (const { text, family } of subnets) {
    const [address = "", prefix] = text.split("/");
    excluded.addSubnet(address, Number(prefix), family);
  }
  const listed = intent.onlyInbound.length === 0 || intent.onlyInbound.includes(dport);
  const passes = isIn(intent.excludeInbound, dport) || excluded.check(src, familyOf(src));
  return listed && !passes ? `REDIRECT ${intent.inboundPort}` : "ACCEPT";
}

function isIn(ranges: Intent["excludeInbound"], port: number): boolean {
  return ranges.some(({ from, to }) => port >= from && port <= to);
}

const traces: [name: string, packet: Packet, verdict: string][] = [
  ["least conf", { chain: "OUTPUT", dport: 443 }, "REDIRECT 4140"],
  ["least conf", { chain: "OUTPUT", dport: 443, uid: 2102 }, "ACCEPT"],
  ["least conf", { chain: "OUTPUT", dport: 443, uid: 0, gid: 2102 }, "REDIRECT 4140"],
  ["least conf", { chain: "OUTPUT", dport: 443, out: "lo" }, "ACCEPT"],
  ["least conf", { chain: "OUTPUT", dport: 53, proto: "udp" }, "ACCEPT"],
  ["least conf", { chain: "PREROUTING", dport: 80 }, "REDIRECT 4143"],
  ["least conf", { chain: "PREROUTING", dport: 53, proto: "udp" }, "ACCEPT"],
  ["chart default", { chain: "PREROUTING", dport: 4189 }, "REDIRECT 4143"],
  ["chart default", { chain: "PREROUTING", dport: 4190 }, "ACCEPT"],
  ["chart default", { chain: "PREROUTING", dport: 4191 }, "ACCEPT"],
  ["chart default", { chain: "PREROUTING", dport: 4192 }, "REDIRECT 4143"],
  ["chart default", { chain: "OUTPUT", dport: 4191 }, "REDIRECT 4140"],
  ["gid", { chain: "OUTPUT", dport: 443, gid: 2103 }, "ACCEPT"],
  ["gid", { chain: "OUTPUT", dport: 443, gid: 2102 }, "REDIRECT 4140"],
  ["custom ports", { chain: "OUTPUT", dport: 443 }, "REDIRECT 5140"],
  ["custom ports", { chain: "PREROUTING", dport: 443 }, "REDIRECT 5143"],
  ["listed ports", { chain: "PREROUTING", dport: 8080 }, "REDIRECT 4143"],
  ["listed ports", { chain: "PREROUTING", dport: 8081 }, "ACCEPT"],
  ["listed and excluded", { chain: "PREROUTING", dport: 443 }, "ACCEPT"],
  ["sixteen ports", { chain: "PREROUTING", dport: 130 }, "ACCEPT"],
  ["sixteen ports", { chain: "PREROUTING", dport: 129 }, "REDIRECT 4143"],
  ["only two ports outbound", { chain: "OUTPUT", dport: 3000 }, "REDIRECT 4140"],
  ["only two ports outbound", { chain: "OUTPUT", dport: 8081 }, "REDIRECT 4140"],
  ["only two ports outbound", { chain: "OUTPUT", dport: 8082 }, "ACCEPT"],
  ["all inbound from 0", { chain: "PREROUTING", dport: 65535 }, "ACCEPT"],
  ["host bits", { chain: "PREROUTING", dport: 80, src: "10.127.255.255" }, "ACCEPT"],
  ["host bits", { chain: "PREROUTING", dport: 80, src: "10.128.0.0" }, "REDIRECT 4143"],
  ["all of ipv4", { chain: "PREROUTING", dport: 80, src: "192.0.2.1" }, "ACCEPT"],
];

test.each(traces)("buildRuleset() of %s lets %j go to %s", (name, packet, verdict) => {
  const intent = cases.find((entry) => entry.name === name)?.intent ?? leastIntent;
  expect(trace(buildRuleset(intent, "ipv4"), packet)).toBe(verdict);
});

test.each(familyCases)("buildRuleset() keeps its rules' promises: $title", ({ entry, family }) => {
  const chains = ledChains(buildRuleset(entry.intent, family));
  const rules = chains.flatMap((own) => [own.jump, ...own.rules]);
  const targets = rules.map((rule) => / -j (\S+)/.exec(rule)?.[1] ?? "");
  const known = ["RETURN", "REDIRECT", ...ownChains];
  expect(chains.map(({ name, hook }) => [name, hook])).toEqual([
    [inboundChain, "PREROUTING"],
    [outboundChain, "OUTPUT"],
  ]);
  expect(targets.filter((target) => !known.includes(target))).toEqual([]);
  expect(rules.filter((rule) => !/ -m comment --comment "sluice\/[a-z-]+" /.test(rule))).toEqual(
    [],
  );
  expect(chains.flatMap(strayRules)).toEqual([]);
  expect(rules.filter((rule) => slotsOf(rule) > 15)).toEqual([]);
  expect(rules.filter((rule, at) => rules.indexOf(rule) !== at)).toEqual([]);
});

function strayRules({ name, hook, jump, rules }: LedChain): string[] {
  const strays = rules.filter((rule) => !rule.startsWith(`-A ${name} `));
  return jump.startsWith(`-A ${hook} `) ? strays : [...strays, jump];
}

function slotsOf(rule: string): number {
  return (/--dports (\S+)/.exec(rule)?.[1] ?? "").split(/[,:]/).length;
}

function rulesIn(ruleset: Ruleset): string[] {
  return natIn(ruleset).chains.flatMap(({ rules }) => rules);
}
