// Drop-in for linkerd-cni, by the executable itself: for each conf, pod and namespace that linkerd-cni's executable was run
// with (fixture/linkerd-cni.json), read from the API, and from the runtime where it would know as much, the rules in the
// pod's netns mean what its rules meant, or the table below says why not and what there is instead.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { parseSave } from "../../../../src/netfilter/save.ts";
import { type Family, families } from "../../../../src/netfilter/table.ts";
import { type Annotations, objectsFor, type PodWish } from "../../../lab/api-objects.ts";
import { packetsAround, tracer } from "../../../lab/trace.ts";
import {
  type Answer,
  type Attachment,
  confFor,
  doneLine,
  injected,
  type Keys,
  lookInto,
  test,
} from "./level.ts";

type Saved = readonly string[];
type Entry = {
  readonly name: string;
  readonly linkerd: Keys;
  readonly annotations: Annotations;
  readonly namespaceAnnotations: Annotations;
  readonly labels: Annotations;
  readonly containers: keyof typeof pods;
  readonly wrote: { nft4?: Saved; nft6?: Saved; legacy4?: Saved; legacy6?: Saved };
};

const fixture = join(import.meta.dirname, "../../../fixture/linkerd-cni.json");
const entries: readonly Entry[] = JSON.parse(readFileSync(fixture, "utf8"));

const [app, proxy, init] = [{ name: "app" }, { name: "linkerd-proxy" }, { name: "linkerd-init" }];
const pods = {
  sidecar: { containers: [app, proxy] },
  native: { containers: [app], initContainers: [proxy] },
  plain: { containers: [app] },
  init: { containers: [app, proxy], initContainers: [init] },
} as const satisfies Record<string, PodWish>;

/** What came of an ADD: rules that mean the same as these in each family, why the pod was left alone, or an error. */
type Outcome =
  | { readonly rules: readonly (readonly string[])[] }
  | { readonly skipped: string }
  | { readonly error: Readonly<Record<string, unknown>> };

const jumps = ["-A PREROUTING -j PROXY_INIT_REDIRECT", "-A OUTPUT -j PROXY_INIT_OUTPUT"];
const sent = [
  "-A PROXY_INIT_OUTPUT -m owner --uid-owner 2102 -j RETURN",
  "-A PROXY_INIT_OUTPUT -o lo -j RETURN",
  "-A PROXY_INIT_OUTPUT -p tcp -j REDIRECT --to-ports 4140",
];
const into = (...rules: readonly string[]) => rules.map((rule) => `-A PROXY_INIT_REDIRECT ${rule}`);
const skipping = (ports: string) => `-p tcp -m multiport --dports ${ports} -j RETURN`;
const from = (subnet: string) => `-s ${subnet} -j RETURN`;
const admin = skipping("4190,4191");
const toProxy = "-p tcp -j REDIRECT --to-ports 4143";
const defaults = [...jumps, ...sent, ...into(admin, toProxy)];
const moved = [...sent, ...into(skipping("4190,4191,5190,5191"), toProxy)].map((rule) =>
  rule.replace("4140", "5140").replace("4143", "5143"),
);

const badConf = (problem: string): Outcome => ({
  error: { cniVersion: "1.1.0", code: 7, msg: `invalid conf: linkerd.${problem}` },
});
const badAnnotation = (problem: string): Outcome => ({
  error: {
    cniVersion: "1.1.0",
    code: 103,
    msg: `pod emoji/web has annotations that cannot be honoured: config.linkerd.io/${problem}`,
    details: "correct or remove them",
  },
});
const noPort = (word: string) => `"${word}" is not a port (1 to 65535)`;
const noSubnet = (word: string) => `"${word}" is not a subnet (like 10.0.0.0/8 or fd00::/8)`;

/** By name: what linkerd-cni did, and what we do. Where it says "as we do", only the words differ. */
const others: Readonly<Record<string, [theirs: string, ours: Outcome]>> = {
  "one string with two ports": ["drops the entry, then fails half-way", { rules: [defaults] }],
  "uid 0": [
    "writes no owner rule: the proxy redirects itself",
    badConf("proxy-uid: 0 is not a user id (1 to 4294967294)"),
  ],
  "no uid": ["writes no owner rule: the proxy redirects itself", badConf("proxy-uid is missing")],
  "subnet v6 in a v4 pod": ["fails half-way", { rules: [defaults] }],
  "subnets mixed, dual": [
    "fails half-way",
    {
      rules: [
        [...jumps, ...sent, ...into(admin, from("10.0.0.0/8"), toProxy)],
        [...jumps, ...sent, ...into(admin, from("fd00::/8"), toProxy)],
      ],
    },
  ],
  "bare address": [
    "fails; an address alone can only be meant as a subnet of one",
    { rules: [[...jumps, ...sent, ...into(admin, from("10.0.0.1/32"), toProxy)]] },
  ],
  "no proxy ports": ["redirects to port 0", badConf("incoming-proxy-port is missing")],
  "port 65536": ["fails as we do", badConf(`incoming-proxy-port: ${noPort("65536")}`)],
  simulate: ["writes nothing as we do", { rules: [] }],
  "port as string": ["fails; a number in quotes can only be meant so", { rules: [defaults] }],
  "ignore as numbers": ["fails; numbers can only be meant so", { rules: [defaults] }],
  "space after comma": [
    "drops the entry: the port is redirected",
    { rules: [[...jumps, ...sent, ...into(skipping("80,443,4190,4191"), toProxy)]] },
  ],
  "name of a port": [
    "drops the entry: the port is redirected",
    badAnnotation(`skip-inbound-ports: ${noPort("http")}`),
  ],
  "bad entry among good": [
    "drops the entry: the port is redirected",
    badAnnotation(`skip-outbound-ports: ${noPort("abc")}`),
  ],
  "all outbound bad": ["fails half-way", badAnnotation(`skip-outbound-ports: ${noPort("abc")}`)],
  "port 0": [
    "excludes a port that no packet has",
    badAnnotation(`skip-outbound-ports: ${noPort("0")}`),
  ],
  "port 70000": ["fails half-way", badAnnotation(`skip-outbound-ports: ${noPort("70000")}`)],
  "skip-subnets bad": ["fails as we do", badAnnotation(`skip-subnets: ${noSubnet("10.0.0.0/33")}`)],
  "proxy-uid bad": [
    "fails as we do",
    badAnnotation('proxy-uid: "root" is not an id (1 to 4294967294)'),
  ],
  "inbound-port ignored": [
    "redirects to ports where the proxy does not listen",
    { rules: [[...jumps, ...moved]] },
  ],
  "no proxy container": [
    "leaves the pod alone as we do",
    { skipped: "no container linkerd-proxy" },
  ],
  "linkerd-init present": [
    "leaves the pod alone as we do",
    { skipped: "the pod has an init container linkerd-init, which sets up the rules itself" },
  ],
};

/** What is expected of an entry: the outcome above, or rules that mean what linkerd-cni wrote. */
function expected({ name, wrote }: Entry): Outcome {
  const [, ours] = others[name] ?? [];
  if (ours !== undefined) return ours;
  const { nft4, nft6, legacy4, legacy6 } = wrote;
  return { rules: [nft4 ?? legacy4, nft6 ?? legacy6].filter((lines) => lines !== undefined) };
}

test("the table is about entries of the fixture", () => {
  const names = entries.map(({ name }) => name);
  expect(names.length).toBe(67);
  expect(Object.keys(others).filter((name) => !names.includes(name))).toEqual([]);
});

test.concurrent.for(entries.map((entry) => ({ ...entry, requests: requestsFor(entry) })))(
  "ADD by the API means what linkerd-cni wrote, in $requests requests: $name",
  async (entry, { api, pod }) => {
    const { annotations, labels, namespaceAnnotations, linkerd } = entry;
    api.objects = objectsFor(
      { annotations, labels, ...pods[entry.containers] },
      namespaceAnnotations,
    );
    const conf = confFor(pod, { linkerd });

    const answer = await pod.call("ADD", conf);

    expectOutcome({ pod, answer, conf }, expected(entry));
    expect(api.requests.length).toBe(entry.requests);
  },
);

// An invalid conf is judged once the pod is known to have a proxy; linkerd-cni asks up to seven times.
function requestsFor(entry: Entry): number {
  const outcome = expected(entry);
  if ("error" in outcome && outcome.error["code"] === 7) return 1;
  if ("skipped" in outcome) return 1;
  return "linkerd.io/control-plane-component" in entry.labels ? 3 : 2;
}

/** Those of which the runtime's annotations say all: the injector copies the namespace's onto the pod. */
const told = entries.filter(({ containers }) => containers !== "init");

test.concurrent.for(told)(
  "ADD by the runtime's annotations means the same, and asks nobody: $name",
  async (entry, { api, pod }) => {
    const own = { ...entry.namespaceAnnotations, ...withoutEmpty(entry.annotations) };
    const annotations = entry.containers === "plain" ? own : injected(own);
    const isControlPlane = "linkerd.io/control-plane-component" in entry.labels;
    const sluice = isControlPlane ? { "control-plane-namespace": "emoji" } : {};
    const conf = confFor(pod, { linkerd: entry.linkerd, annotations, sluice });

    const answer = await pod.call("ADD", conf);

    const reason = "no annotation linkerd.io/proxy-version: the pod has no proxy";
    const outcome = entry.containers === "plain" ? { skipped: reason } : expected(entry);
    expectOutcome({ pod, answer, conf }, outcome);
    expect(api.requests).toEqual([]);
  },
);

function withoutEmpty(annotations: Annotations): Annotations {
  return Object.fromEntries(Object.entries(annotations).filter(([, text]) => text !== ""));
}

type Added = {
  readonly pod: Attachment;
  readonly answer: Answer;
  readonly conf: { readonly prevResult: object };
};

function expectOutcome({ pod, answer, conf }: Added, outcome: Outcome): void {
  const found = lookInto(pod);
  if ("error" in outcome) {
    expect([answer.exitCode, JSON.parse(answer.stdout)]).toEqual([1, outcome.error]);
    expect([found.untouched, pod.records()]).toEqual([true, []]);
    return;
  }
  expect([answer.exitCode, answer.stdout]).toEqual([0, JSON.stringify(conf.prevResult)]);
  expect(doneLine(answer)?.["skipped"]).toBe("skipped" in outcome ? outcome.skipped : undefined);
  const rules = "rules" in outcome ? outcome.rules : [];
  if (rules.length === 0) {
    expect([found.untouched, pod.records()]).toEqual([true, []]);
    return;
  }
  for (const [i, family] of families.entries()) {
    const [ours, theirs] = [found.rules[family], rules[i]];
    expect(ours.length > 0).toBe(theirs !== undefined);
    expect(differences(ours, theirs ?? [], family)).toEqual([]);
  }
}

/** The packets that go elsewhere by the one rules than by the others. */
function differences(ours: Saved, theirs: Saved, family: Family): object[] {
  const [goes, went] = [tracerOf(ours), tracerOf(theirs)];
  return packetsAround([...ours, ...theirs], family)
    .map((packet) => ({ packet, ours: goes(packet), theirs: went(packet) }))
    .filter((verdict) => verdict.ours !== verdict.theirs);
}

function tracerOf(rules: Saved): ReturnType<typeof tracer> {
  const chains = ["PREROUTING", "OUTPUT", "PROXY_INIT_REDIRECT", "PROXY_INIT_OUTPUT"];
  const declared = chains.map((chain) => `:${chain} - [0:0]`);
  const lines = rules.filter((rule) => rule.startsWith("-A"));
  return tracer(parseSave(["*nat", ...declared, ...lines, "COMMIT", ""].join("\n")));
}
