// Drop-in for linkerd-cni: for each conf and pod that its executable was run with (fixture/linkerd-cni.json), our rules mean
// what its rules meant, or the table below says why not and what we do.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { applyAnnotations } from "../../../src/mesh/linkerd/annotation.ts";
import { controlPlane } from "../../../src/mesh/linkerd/control-plane.ts";
import { skipReason } from "../../../src/mesh/linkerd/pod.ts";
import { buildRulesets } from "../../../src/mesh/linkerd/ruleset.ts";
import type { Annotations, PodSpec } from "../../../src/mesh/pod.ts";
import { content } from "../../../src/netfilter/rule.ts";
import { parseSave } from "../../../src/netfilter/save.ts";
import type { Ruleset, Table } from "../../../src/netfilter/table.ts";
import { meantBy } from "../../lab/meant.ts";
import { natIn } from "../../lab/rulesets.ts";
import { packetsAround, tracer } from "../../lab/trace.ts";

type Saved = readonly string[];
type Entry = {
  readonly name: string;
  readonly linkerd: Readonly<Record<string, unknown>>;
  readonly annotations: Annotations;
  readonly namespaceAnnotations: Annotations;
  readonly labels: Annotations;
  readonly containers: "sidecar" | "native" | "plain" | "init";
  readonly wrote: { nft4?: Saved; nft6?: Saved; legacy4?: Saved; legacy6?: Saved };
};

const fixture = join(import.meta.dirname, "../../fixture/linkerd-cni.json");
const entries: readonly Entry[] = JSON.parse(readFileSync(fixture, "utf8"));

const sent = [
  "-A PROXY_INIT_OUTPUT -m owner --uid-owner 2102 -j RETURN",
  "-A PROXY_INIT_OUTPUT -o lo -j RETURN",
  "-A PROXY_INIT_OUTPUT -p tcp -j REDIRECT --to-ports 4140",
];
const from = (subnet: string) => `-A PROXY_INIT_REDIRECT -s ${subnet} -j RETURN`;
const toProxy = "-A PROXY_INIT_REDIRECT -p tcp -j REDIRECT --to-ports 4143";
const skipping = (ports: string) =>
  `-A PROXY_INIT_REDIRECT -p tcp -m multiport --dports ${ports} -j RETURN`;
const admin = skipping("4190,4191");
const defaults = [admin, toProxy, ...sent];
const moved = [
  skipping("4190,4191,5190,5191"),
  toProxy.replace("4143", "5143"),
  ...sent.map((rule) => rule.replace("4140", "5140")),
];

const [skipInbound, skipOutbound] = [
  "config.linkerd.io/skip-inbound-ports",
  "config.linkerd.io/skip-outbound-ports",
];
const noUid = (word: number) => `linkerd.proxy-uid: ${word} is not a user id (1 to 4294967294)`;
const noId = (word: string) => `"${word}" is not an id (1 to 4294967294)`;
const noPort = (word: string) => `"${word}" is not a port (1 to 65535)`;
const noSubnet = (word: string) => `"${word}" is not a subnet (like 10.0.0.0/8 or fd00::/8)`;

/** What the API says of the Service `kubernetes`. */
const servicePorts = [
  { from: 443, to: 443 },
  { from: 6443, to: 6443 },
];

/** Why the pod is left alone, what is wrong with its annotations or the conf, or our rules (a list a family). */
type Ours = string | Saved[];

/** By name: what is wrong with what linkerd-cni did, and what we do. */
const others: Readonly<Record<string, [reason: string, ours: Ours]>> = {
  "one string with two ports": ["drops the entry, then fails half-way", [defaults]],
  "uid 0": ["writes no owner rule: the proxy redirects itself", noUid(0)],
  "no uid": ["writes no owner rule", "linkerd.proxy-uid is missing"],
  "subnet v6 in a v4 pod": ["fails half-way", [defaults]],
  "subnets mixed, dual": [
    "fails half-way",
    [
      [admin, from("10.0.0.0/8"), toProxy, ...sent],
      [admin, from("fd00::/8"), toProxy, ...sent],
    ],
  ],
  "bare address": [
    "fails; an address alone can only be meant as a subnet of one",
    [[admin, from("10.0.0.1/32"), toProxy, ...sent]],
  ],
  "no proxy ports": ["redirects to port 0", "linkerd.incoming-proxy-port is missing"],
  "port 65536": ["fails as we do", `linkerd.incoming-proxy-port: ${noPort("65536")}`],
  simulate: ["writes nothing; nor do we, but the rules are made and logged", [defaults]],
  "port as string": ["fails; a number in quotes can only be meant so", [defaults]],
  "ignore as numbers": ["fails; numbers can only be meant so", [defaults]],
  "space after comma": ["drops the entry", [[skipping("80,443,4190,4191"), toProxy, ...sent]]],
  "name of a port": ["drops the entry", `${skipInbound}: ${noPort("http")}`],
  "bad entry among good": ["drops the entry", `${skipOutbound}: ${noPort("abc")}`],
  "all outbound bad": ["fails half-way", `${skipOutbound}: ${noPort("abc")}`],
  "port 0": ["excludes a port that no packet has", `${skipOutbound}: ${noPort("0")}`],
  "port 70000": ["fails half-way", `${skipOutbound}: ${noPort("70000")}`],
  "skip-subnets bad": [
    "fails as we do",
    `config.linkerd.io/skip-subnets: ${noSubnet("10.0.0.0/33")}`,
  ],
  "proxy-uid bad": ["fails as we do", `config.linkerd.io/proxy-uid: ${noId("root")}`],
  "inbound-port ignored": ["redirects to where the proxy does not listen", [moved]],
  "no proxy container": ["leaves the pod alone as we do", "no container linkerd-proxy"],
  "linkerd-init present": [
    "leaves the pod alone as we do",
    "the pod has an init container linkerd-init, which sets up the rules itself",
  ],
};

/** Our rules for the entry's pod, or why there are none. */
function oursFor(entry: Entry): Ruleset[] | string {
  const { linkerd, annotations, namespaceAnnotations } = entry;
  const spec = specOf(entry);
  const skipped = skipReason({ annotations, spec });
  if (skipped !== undefined) return skipped;
  const { intent: draft, families } = meantBy(linkerd);
  const facts = { annotations, namespaceAnnotations, spec };
  const apiServerPorts = controlPlane(facts, false).isControlPlane ? servicePorts : [];
  const policy = { denied: [], apiServerPorts, dropEntries: false };
  const { intent, refusals } = applyAnnotations(draft, facts, policy);
  const refused = refusals.map(({ annotation, problem }) => `${annotation}: ${problem}`);
  return refused.length > 0 ? refused.join("; ") : buildRulesets(intent, families);
}

const proxy = "linkerd-proxy";
const containersOf = { sidecar: [proxy], native: [], plain: [], init: [proxy] };
const initContainersOf = { sidecar: [], native: [proxy], plain: [], init: ["linkerd-init"] };

function specOf({ labels, containers }: Entry): PodSpec {
  const named = (names: readonly string[]) => names.map((name) => ({ name, runAsUser: undefined }));
  return {
    hostNetwork: false,
    labels,
    containers: named(["app", ...containersOf[containers]]),
    initContainers: named(initContainersOf[containers]),
  };
}

function plain(ruleset: Ruleset): string[] {
  return natIn(ruleset).chains.flatMap(({ rules }) => rules.map(content));
}

test("the fixture has the entries that the table is about", () => {
  const names = entries.map(({ name }) => name);
  expect(names.length).toBe(67);
  expect(Object.keys(others).filter((name) => !names.includes(name))).toEqual([]);
});

const alike = entries.filter(({ name }) => !(name in others));
const unlike = entries.filter(({ name }) => name in others);

test.each(alike)("buildRulesets() means what linkerd-cni wrote: $name", (entry) => {
  const { nft4, nft6, legacy4, legacy6 } = entry.wrote;
  const theirs = [nft4 ?? legacy4, nft6 ?? legacy6].filter((lines) => lines !== undefined);
  const ours = oursFor(entry);
  expect(ours.length).toBe(theirs.length);
  if (typeof ours === "string") throw new Error(ours);
  for (const [i, ruleset] of ours.entries()) {
    expect(differences(ruleset, theirs[i] ?? [])).toEqual([]);
  }
});

/** The packets that go elsewhere by our rules than by theirs. */
function differences(ruleset: Ruleset, theirs: Saved): object[] {
  const packets = packetsAround([...theirs, ...plain(ruleset)], ruleset.family);
  const [goes, went] = [tracer(ruleset), tracer(readTable(theirs))];
  return packets
    .map((packet) => ({ packet, ours: goes(packet), theirs: went(packet) }))
    .filter((verdict) => verdict.ours !== verdict.theirs);
}

function readTable(lines: Saved): Table {
  const builtins = [":PREROUTING ACCEPT [0:0]", ":OUTPUT ACCEPT [0:0]"];
  return parseSave(["*nat", ...builtins, ...lines, "COMMIT", ""].join("\n"));
}

test.each(unlike)("buildRulesets() does better than linkerd-cni: $name", (entry) => {
  const [, ours] = others[entry.name] ?? [];
  expect(decided(entry)).toEqual(ours);
});

function decided(entry: Entry): Ours {
  try {
    const ours = oursFor(entry);
    return typeof ours === "string" ? ours : ours.map(plain);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
