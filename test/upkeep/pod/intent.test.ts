// What ADD redirects for a pod: its families, what it says in annotations, and why it is left alone.
import { expect, test } from "vitest";
import { Fault } from "../../../src/fault.ts";
import type { ApiPod } from "../../../src/kube/objects.ts";
import { UnansweredError } from "../../../src/kube/unanswered.ts";
import type { Annotations } from "../../../src/mesh/pod.ts";
import type { Family } from "../../../src/netfilter/table.ts";
import { cni, conf, failed, succeeded, withLinkerd } from "../../fake/call.ts";
import { annotated, api, asking, bare, mark, pod, says } from "../../fake/pod.ts";
import { intentOf, redirectedIn } from "../../fake/record.ts";
import { makeWorld } from "../../fake/world.ts";

const result = succeeded(JSON.stringify(conf.prevResult));
const span = (from: number, to = from) => ({ from, to });

const found: [when: string, addresses: string[], families: Family[]][] = [
  ["it has IPv4 addresses", ["10.1.2.3"], ["ipv4"]],
  ["it has both", ["10.1.2.3", "fd00:0000:0000:0000:0000:0000:0000:0003"], ["ipv4", "ipv6"]],
  ["it has only IPv6 ones", ["fd00:0000:0000:0000:0000:0000:0000:0003"], ["ipv4", "ipv6"]],
  ["it has none yet", [], ["ipv4"]],
  ["it has those that every netns has", ["127.0.0.1", "169.254.1.1"], ["ipv4"]],
];

test.each(found)(
  "ADD looks into the netns when prevResult has no addresses: %s",
  async (_, addresses, families) => {
    const world = makeWorld();
    world.addresses.push(...addresses);
    const prevResult = { cniVersion: "1.1.0" };
    expect(await cni(world, "ADD", { conf: { prevResult } })).toEqual(
      succeeded(JSON.stringify(prevResult)),
    );
    expect(redirectedIn(world)).toEqual(families);
  },
);

test("ADD stands alone without prevResult, and gives the smallest result", async () => {
  const world = makeWorld();
  expect(await cni(world, "ADD", { conf: { prevResult: undefined } })).toEqual(
    succeeded('{"cniVersion":"1.1.0"}'),
  );
});

const gaps: [when: string, change: object, warning: object][] = [
  [
    "a dual pod is redirected for IPv4 only",
    { ipv6: false },
    {
      message: "the pod has IPv6 addresses and linkerd.ipv6 is off: they pass the proxy by",
      addresses: ["10.1.2.3/24", "fd00::3/64"],
    },
  ],
  [
    "all sources are excluded",
    { "subnets-to-ignore": ["0.0.0.0/0", "::/0", "10.0.0.0/8"] },
    {
      message: "all sources are excluded: what comes in passes the proxy by",
      subnets: ["0.0.0.0/0", "::/0"],
    },
  ],
];

test.each(gaps)("ADD warns when %s", async (_, change, warning) => {
  const world = makeWorld();
  expect(await cni(world, "ADD", withLinkerd(change))).toEqual(result);
  expect(world.lines[0]).toEqual({ level: "warn", ...warning });
});

test("ADD simulates: it logs both texts, and writes nothing", async () => {
  const world = makeWorld();
  expect(await cni(world, "ADD", withLinkerd({ simulate: true }))).toEqual(result);
  expect(world.asked).toEqual([]);
  expect(world.store.records.size).toBe(0);
  expect(world.lines).toMatchObject([
    { message: "simulate: nothing is written", family: "ipv4" },
    { message: "simulate: nothing is written", family: "ipv6" },
    { message: "done" },
  ]);
  expect(JSON.stringify(world.lines[0])).toContain("-A PROXY_INIT_OUTPUT -o lo");
});

test("ADD takes the pod's word from the runtime, and asks no API", async () => {
  const world = makeWorld();
  const annotations = { ...mark, ...says({ "proxy-uid": "3000", "skip-inbound-ports": "80" }) };
  expect(await cni(world, "ADD", annotated(annotations))).toEqual(result);
  expect(intentOf(world)).toMatchObject({
    proxyUid: 3000,
    excludeInbound: [span(80), span(4190, 4191), span(4567, 4568)],
  });
});

test("ADD takes the pod's and the namespace's word from the API", async () => {
  const world = makeWorld();
  const asked = api(
    world,
    { ...pod, annotations: says({ "proxy-gid": "3001" }) },
    says({ "skip-outbound-ports": "25" }),
  );
  expect(await cni(world, "ADD", asking())).toEqual(result);
  expect(intentOf(world)).toMatchObject({ proxyGid: 3001, excludeOutbound: [span(25)] });
  expect(asked).toEqual(["pod emoji/web", "namespace emoji"]);
  expect(world.lines[0]).toEqual({
    level: "warn",
    message: "config.linkerd.io/skip-outbound-ports replaces the conf's outbound ports 4567-4568",
    pod: { namespace: "emoji", name: "web" },
  });
});

test("ADD lets the control plane reach the API server", async () => {
  const world = makeWorld();
  const labels = { "linkerd.io/control-plane-component": "destination" };
  const spec = pod.spec && { ...pod.spec, labels };
  const asked = api(world, { ...pod, spec });
  await cni(world, "ADD", asking());
  expect(intentOf(world)?.excludeOutbound).toEqual([span(443), span(4567, 4568), span(6443)]);
  expect(asked).toEqual(["pod emoji/web", "namespace emoji", "ports"]);
});

test("ADD sets the kernel's timeout when the pod asks for it", async () => {
  const world = makeWorld();
  await cni(world, "ADD", annotated({ ...mark, ...says({ "close-wait-timeout": "1h" }) }));
  expect([...world.sysctls]).toEqual([
    ["/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close_wait", "3600"],
  ]);
});

const args = (text: string) => ({ env: { CNI_ARGS: text } });
const kubeSystem = args("K8S_POD_NAMESPACE=kube-system;K8S_POD_NAME=dns");
const agent = { "agent-pod": { namespace: "emoji", "name-prefix": "we" } };
const unmarked = "no annotation linkerd.io/proxy-version: the pod has no proxy";
const skipped: [when: string, change: object, reason: string][] = [
  ["it has no mark", annotated({}), unmarked],
  ["it has no annotations at all", annotated(null), unmarked],
  [
    "its namespace is excluded",
    annotated(mark, { "exclude-namespaces": ["emoji"] }),
    "namespace emoji is excluded",
  ],
  ["it is the agent's", annotated(mark, agent), "the pod is the node agent's own"],
  ["the runtime names none", { ...asking(), ...args("") }, "the runtime names no pod"],
  [
    "the runtime names half of it",
    { ...asking(), ...args("K8S_POD_NAMESPACE=emoji") },
    "the runtime names no pod",
  ],
  [
    "it is in kube-system, which somebody wrote down",
    { ...annotated(mark, { "exclude-namespaces": ["kube-system"] }), ...kubeSystem },
    "namespace kube-system is excluded",
  ],
  ["it is in kube-system, and has no mark", { ...annotated({}), ...kubeSystem }, unmarked],
  ["it has no name and no mark", { ...annotated({}), ...args("") }, unmarked],
];

test.each(skipped)(
  "ADD leaves the pod alone, and asks nothing, when %s",
  async (_, change, reason) => {
    const world = makeWorld();
    expect(await cni(world, "ADD", change)).toEqual(result);
    expect(world.lines).toMatchObject([{ message: "done", skipped: reason }]);
    expect(world.asked).toEqual([]);
    expect(world.store.records.size).toBe(0);
    expect(world.open).toEqual(new Set());
  },
);

test("ADD leaves the pod alone when the API knows no proxy in it", async () => {
  const world = makeWorld();
  const asked = api(world, {
    ...pod,
    spec: { hostNetwork: false, labels: {}, containers: [], initContainers: [] },
  });
  expect(await cni(world, "ADD", asking())).toEqual(result);
  expect(world.lines).toMatchObject([{ message: "done", skipped: "no container linkerd-proxy" }]);
  expect(asked).toEqual(["pod emoji/web"]);
});

const noWay = (details: string) =>
  failed(7, "invalid conf: there is no way to know the pod", details);
const noCapability =
  "the runtime sent no io.kubernetes.cri.pod-annotations (set it in the entry's capabilities)";
const noKubeconfig = "kubernetes.kubeconfig is not set";
const unknown: [when: string, conf: object, details: string][] = [
  [
    "nothing is sent, and no API configured",
    { kubernetes: {} },
    `${noCapability}, and ${noKubeconfig}`,
  ],
  [
    "only annotations are wanted",
    { kubernetes: { kubeconfig: "/k" }, sluice: { "pod-source": "annotations" } },
    noCapability,
  ],
  [
    "only the API is wanted",
    { ...annotated(mark).conf, kubernetes: {}, sluice: { "pod-source": "api" } },
    noKubeconfig,
  ],
];

test.each(unknown)("ADD refuses the conf when %s", async (_, change, details) => {
  const world = makeWorld();
  expect(await cni(world, "ADD", { conf: { ...change } })).toEqual(noWay(details));
  expect(world.asked).toEqual([]);
});

test("ADD fails when a pod that may be meshed cannot be read", async () => {
  const world = makeWorld();
  api(world, new Fault("try-again", "the API server did not answer", { details: "d" }));
  expect(await cni(world, "ADD", asking())).toEqual(
    failed(11, "the API server did not answer", "d"),
  );
  expect(world.asked).toEqual([]);
});

const replaced = failed(
  11,
  "pod emoji/web of the API server is another pod of that name: UID 0123, not 4567",
  "the pod was replaced; the runtime tries again, or gives this sandbox up",
);
const named = "K8S_POD_NAMESPACE=emoji;K8S_POD_NAME=web";
const identities: [when: string, uid: string, told: ApiPod, answer: unknown][] = [
  ["it is the runtime's", ";K8S_POD_UID=0123", pod, result],
  ["the runtime tells none", "", pod, result],
  ["the runtime tells an empty one", ";K8S_POD_UID=", pod, result],
  ["it is another", ";K8S_POD_UID=4567", pod, replaced],
  ["it is another, without a proxy", ";K8S_POD_UID=4567", bare, replaced],
  ["it is another, of a static pod", ";K8S_POD_UID=4567", { ...pod, isMirror: true }, result],
];

test.each(identities)("ADD looks at the UID that the API tells: %s", async (...row) => {
  const [, uid, told, answer] = row;
  const world = makeWorld();
  api(world, told);
  expect(await cni(world, "ADD", { ...asking(), ...args(named + uid) })).toEqual(answer);
  expect(world.store.records.size).toBe(answer === result ? 1 : 0);
});

const bad = { ...mark, ...says({ "skip-inbound-ports": "http", "proxy-uid": "0" }) };
const problems = [
  'config.linkerd.io/proxy-uid: "0" is not an id (1 to 4294967294)',
  'config.linkerd.io/skip-inbound-ports: "http" is not a port (1 to 65535)',
];

const away = new UnansweredError("try-again", "the API server did not answer", {});
const rejected = new Fault("try-again", "the API server rejected our token", {});
const forbidden = new Fault("pod-unreadable", "the API server refused", {});

// While the API is away: what the runtime's annotations say of a pod that the conf would ask the API about.
const unasked: [string, Fault, Annotations | null, unknown][] = [
  ["it is away, and they mark no proxy", away, null, result],
  ["it is away, and they mark one", away, mark, failed(11, away.message)],
  ["it rejects our token, and they mark no proxy", rejected, null, failed(11, rejected.message)],
  ["it refuses, and they mark no proxy", forbidden, null, failed(103, forbidden.message)],
];

test.each(unasked)("ADD judges by annotations when the API is asked and %s", async (...row) => {
  const [, told, annotations, answer] = row;
  const world = makeWorld();
  api(world, told);
  expect(await cni(world, "ADD", annotated(annotations, { "pod-source": "api" }))).toEqual(answer);
  expect(world.store.records.size).toBe(0);
});

test("ADD fails, and names each annotation, when some cannot be honoured", async () => {
  const world = makeWorld();
  const { stdout } = await cni(world, "ADD", annotated(bad));
  const { msg, ...rest } = JSON.parse(stdout);
  expect(rest).toEqual({ cniVersion: "1.1.0", code: 103, details: "correct or remove them" });
  const [subject, list = ""] = msg.split(" has annotations that cannot be honoured: ");
  expect([subject, list.split("; ").toSorted()]).toEqual(["pod emoji/web", problems]);
  expect(world.asked).toEqual([]);
});

test("ADD passes such annotations over, and warns, when the conf says so", async () => {
  const world = makeWorld();
  expect(await cni(world, "ADD", annotated(bad, { "on-invalid-annotation": "warn" }))).toEqual(
    result,
  );
  expect(intentOf(world)?.proxyUid).toBe(2102);
  expect(world.lines[0]).toMatchObject({ level: "warn", message: "annotations are passed over" });
});

const denials: [denied: object, refuses: boolean][] = [
  [{ emoji: ["proxy-uid"] }, true],
  [{ "*": ["proxy-uid"] }, true],
  [{ emoji: ["proxy-gid"], "*": ["proxy-uid"] }, false],
  [{ other: ["proxy-uid"] }, false],
];

test.each(denials)(
  "ADD under deny-annotations %j refuses a proxy-uid: %s",
  async (denied, refuses) => {
    const world = makeWorld();
    const annotations = { ...mark, ...says({ "proxy-uid": "3000" }) };
    const output = await cni(world, "ADD", annotated(annotations, { "deny-annotations": denied }));
    const problem = "config.linkerd.io/proxy-uid: is not allowed in this namespace";
    const error = `pod emoji/web has annotations that cannot be honoured: ${problem}`;
    expect(output).toEqual(refuses ? failed(103, error, "correct or remove them") : result);
  },
);
