// Drop-in for linkerd-cni: for each conf that its executable was run with (fixture/linkerd-cni.json), our rules mean what its
// rules meant, or the table below says why not and what we do. What needs a pod's annotations is test/mesh's.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseConf } from "../../src/mesh/conf.ts";
import { intentOfConf } from "../../src/mesh/values.ts";
import { content } from "../../src/netfilter/rule.ts";
import { parseSave } from "../../src/netfilter/save.ts";
import type { Ruleset, Table } from "../../src/netfilter/table.ts";
import { familiesOf } from "../../src/redirect/intent.ts";
import { buildRulesets } from "../../src/redirect/ruleset.ts";
import { cniError, type Thrown, thrownBy } from "../fake/thrown.ts";
import { podAddresses } from "../lab/case.ts";
import { packetsAround, tracer } from "../lab/trace.ts";

type Saved = readonly string[];
type Entry = {
  readonly name: string;
  readonly linkerd: Readonly<Record<string, unknown>>;
  readonly annotations: object;
  readonly namespaceAnnotations: object;
  readonly labels: object;
  readonly containers: string;
  readonly wrote: { nft4?: Saved; nft6?: Saved; legacy4?: Saved; legacy6?: Saved };
};

const fixture = join(import.meta.dirname, "../fixture/linkerd-cni.json");
const all: readonly Entry[] = JSON.parse(readFileSync(fixture, "utf8"));
const entries = all.filter(({ containers, annotations, namespaceAnnotations, labels }) => {
  const facts = { ...annotations, ...namespaceAnnotations, ...labels };
  return containers === "sidecar" && Object.keys(facts).length === 0;
});

const sent = [
  "-A PROXY_INIT_OUTPUT -m owner --uid-owner 2102 -j RETURN",
  "-A PROXY_INIT_OUTPUT -o lo -j RETURN",
  "-A PROXY_INIT_OUTPUT -p tcp -j REDIRECT --to-ports 4140",
];
const admin = "-A PROXY_INIT_REDIRECT -p tcp -m multiport --dports 4190,4191 -j RETURN";
const from = (subnet: string) => `-A PROXY_INIT_REDIRECT -s ${subnet} -j RETURN`;
const toProxy = "-A PROXY_INIT_REDIRECT -p tcp -j REDIRECT --to-ports 4143";
const defaults = [admin, toProxy, ...sent];

/** By name: what is wrong with what linkerd-cni did, and our error, or our rules (a list a family). */
const others: Readonly<Record<string, [reason: string, ours: Thrown | Saved[]]>> = {
  "one string with two ports": ["drops the entry, then fails half-way", [defaults]],
  "uid 0": ["writes no owner rule: the proxy's traffic comes back to it", noUid(0)],
  "no uid": ["writes no owner rule", invalid("proxy-uid is missing")],
  "subnet v6 in a v4 pod": ["fails half-way", [defaults]],
  "subnets mixed, dual": [
    "fails half-way",
    [
      [admin, from("10.0.0.0/8"), toProxy, ...sent],
      [admin, from("fd00::/8"), toProxy, ...sent],
    ],
  ],
  "bare address": ["fails as we do", noSubnet("10.0.0.1")],
  "no proxy ports": ["redirects to port 0", invalid("incoming-proxy-port is missing")],
  "port 65536": ["fails as we do", noPort("65536")],
  simulate: ["writes nothing; nor do we, but the rules are made and logged", [defaults]],
  "port as string": ["fails; a number in quotes can only be meant so", [defaults]],
  "ignore as numbers": ["fails; numbers can only be meant so", [defaults]],
};

function invalid(problem: string): Thrown {
  return cniError(7, `invalid conf: linkerd.${problem}`);
}

function noUid(word: number): Thrown {
  return invalid(`proxy-uid: ${word} is not a user id (1 to 4294967294)`);
}

function noSubnet(word: string): Thrown {
  return invalid(`subnets-to-ignore: "${word}" is not a subnet (like 10.0.0.0/8 or fd00::/8)`);
}

function noPort(word: string): Thrown {
  return invalid(`incoming-proxy-port: "${word}" is not a port (1 to 65535)`);
}

function rulesetsOf({ linkerd }: Entry): Ruleset[] {
  const conf = parseConf({ linkerd }).linkerd;
  const addresses = conf.ipv6 ? [podAddresses.ipv4, podAddresses.ipv6] : [podAddresses.ipv4];
  return buildRulesets(intentOfConf(conf, familiesOf(addresses, conf.ipv6)));
}

function plain({ chains }: Ruleset): string[] {
  return chains.flatMap(({ rules }) => rules.map(content));
}

test("the fixture has the entries that the tables below are about", () => {
  const names = entries.map(({ name }) => name);
  expect([all.length, entries.length]).toEqual([67, 41]);
  expect(Object.keys(others).filter((name) => !names.includes(name))).toEqual([]);
});

const alike = entries.filter(({ name }) => !(name in others));
const unlike = entries.filter(({ name }) => name in others);

test.each(alike)(
  "buildRulesets() means what linkerd-cni wrote when the conf has: $name",
  (entry) => {
    const { nft4, nft6, legacy4, legacy6 } = entry.wrote;
    const theirs = [nft4 ?? legacy4, nft6 ?? legacy6].filter((lines) => lines !== undefined);
    const ours = rulesetsOf(entry);
    expect(ours.length).toBe(theirs.length);
    for (const [i, ruleset] of ours.entries()) {
      const wrote = theirs[i] ?? [];
      const packets = packetsAround([...wrote, ...plain(ruleset)], ruleset.family);
      const [goes, went] = [tracer(ruleset), tracer(readTable(wrote))];
      const differing = packets
        .map((packet) => ({ packet, ours: goes(packet), theirs: went(packet) }))
        .filter((verdict) => verdict.ours !== verdict.theirs);
      expect(differing).toEqual([]);
    }
  },
);

function readTable(lines: Saved): Table {
  const builtins = [":PREROUTING ACCEPT [0:0]", ":OUTPUT ACCEPT [0:0]"];
  return parseSave(["*nat", ...builtins, ...lines, "COMMIT", ""].join("\n"));
}

test.each(unlike)(
  "buildRulesets() does better than linkerd-cni when the conf has: $name",
  (entry) => {
    const [, ours] = others[entry.name] ?? [];
    if (Array.isArray(ours)) expect(rulesetsOf(entry).map(plain)).toEqual(ours);
    else expect(thrownBy(() => rulesetsOf(entry))).toEqual(ours);
  },
);
