// What becomes of a pod by its annotations, by the API, and by an invalid conf: which of them counts, when.
import { expect, test } from "vitest";
import { Fault } from "../../../src/fault.ts";
import type { ApiPod } from "../../../src/kube/objects.ts";
import { UnansweredError } from "../../../src/kube/unanswered.ts";
import type { Annotations } from "../../../src/mesh/pod.ts";
import { cni, conf, failed, succeeded, withLinkerd } from "../../fake/call.ts";
import { annotated, api, asking, bare, mark, pod, says } from "../../fake/pod.ts";
import { intentOf } from "../../fake/record.ts";
import { makeWorld } from "../../fake/world.ts";

const result = succeeded(JSON.stringify(conf.prevResult));
const span = (from: number, to = from) => ({ from, to });
const args = (text: string) => ({ env: { CNI_ARGS: text } });
const kubeSystem = args("K8S_POD_NAMESPACE=kube-system;K8S_POD_NAME=dns");
const away = new UnansweredError("try-again", "the API server did not answer", {});
const forbidden = new Fault("pod-unreadable", "the API server refused", {});
const bad = { ...mark, ...says({ "skip-inbound-ports": "http", "proxy-uid": "0" }) };

const nameless: [when: string, text: string][] = [
  ["no pod", ""],
  ["no pod, but other things", "IgnoreUnknown=1;MAC=0"],
  ["only a namespace", "K8S_POD_NAMESPACE=emoji"],
  ["only a name", "K8S_POD_NAME=web"],
  ["a pod of kube-system", "K8S_POD_NAMESPACE=kube-system;K8S_POD_NAME=dns"],
];

test.each(nameless)("ADD goes by the runtime's annotations when it names %s", async (_, text) => {
  for (const sluice of [{}, { "pod-source": "annotations" }]) {
    const world = makeWorld();
    expect(await cni(world, "ADD", { ...annotated(mark, sluice), ...args(text) })).toEqual(result);
    expect(intentOf(world)?.proxyUid).toBe(2102);
  }
});

test("ADD goes by the runtime's annotations when the API cannot be asked for want of a name", async () => {
  const world = makeWorld();
  const change = { ...annotated(mark, { "pod-source": "api" }), ...args("") };
  expect(await cni(world, "ADD", change)).toEqual(result);
  expect(intentOf(world)?.proxyUid).toBe(2102);
});

test("ADD names the container when the runtime names no pod, or half of one", async () => {
  for (const text of ["", "K8S_POD_NAMESPACE=emoji", "K8S_POD_NAME=web"]) {
    const { stdout } = await cni(makeWorld(), "ADD", { ...annotated(bad), ...args(text) });
    expect(JSON.parse(stdout).msg).toContain("container c0ffee has annotations that cannot be");
  }
});

const inKubeSystem: [when: string, told: ApiPod | Fault, sluice: object, answer: unknown][] = [
  ["has a proxy", pod, {}, result],
  ["cannot be asked for", away, {}, result],
  ["is refused", forbidden, {}, failed(103, forbidden.message)],
  ["cannot be asked for, and no namespace is excluded", away, none(), failed(11, away.message)],
  ["cannot be asked for, and others are excluded", away, other(), failed(11, away.message)],
];

function none() {
  return { "exclude-namespaces": [] };
}

function other() {
  return { "exclude-namespaces": ["other"] };
}

test.each(inKubeSystem)("ADD asks the API for a pod of kube-system, which %s", async (...row) => {
  const [, told, sluice, answer] = row;
  const world = makeWorld();
  const asked = api(world, told);
  expect(await cni(world, "ADD", { ...asking(sluice), ...kubeSystem })).toEqual(answer);
  expect(asked[0]).toBe("pod kube-system/dns");
  expect(intentOf(world)?.proxyUid).toBe(told === pod ? 2102 : undefined);
  const reason = "the API server does not answer, and the pod is in kube-system";
  const warns = told === away && answer === result;
  const lines = warns ? [{ level: "warn", message: reason }, { skipped: reason }] : [{}];
  expect(world.lines.slice(0, lines.length)).toMatchObject(lines);
});

test("ADD leaves a pod of kube-system alone when there is no API to ask", async () => {
  const world = makeWorld({ openKube: () => Promise.reject(forbidden) });
  expect(await cni(world, "ADD", { ...asking(), ...kubeSystem })).toEqual(result);
  expect(world.lines[0]).toMatchObject({ level: "warn", err: String(forbidden) });
  expect(await cni(world, "ADD", asking())).toEqual(failed(103, forbidden.message));
});

test("ADD asks no namespace for a pod that the injector has marked", async () => {
  const world = makeWorld();
  const annotations = { ...mark, ...says({ "inbound-port": "", "skip-outbound-ports": "" }) };
  const inherited = says({ "inbound-port": "5143", "skip-outbound-ports": "25", "proxy-gid": "7" });
  const asked = api(world, { ...pod, annotations }, inherited);
  expect(await cni(world, "ADD", asking())).toEqual(result);
  expect(asked).toEqual(["pod emoji/web"]);
  expect(intentOf(world)).toMatchObject({ inboundPort: 4143, excludeOutbound: [] });
  expect(intentOf(world)?.proxyGid).toBe(undefined);
});

test("ADD takes from the namespace of an older pod only what linkerd-cni does", async () => {
  const world = makeWorld();
  const inherited = {
    "inbound-port": "5143",
    "outbound-port": "5140",
    "admin-port": "5191",
    "control-port": "5190",
    "close-wait-timeout": "1h",
  };
  const theirs = {
    "skip-inbound-ports": "25",
    "skip-subnets": "10.0.0.0/8",
    "proxy-gid": "3001",
  };
  api(world, pod, says({ ...inherited, ...theirs }));
  expect(await cni(world, "ADD", asking())).toEqual(result);
  expect(intentOf(world)).toEqual({
    inboundPort: 4143,
    outboundPort: 4140,
    proxyUid: 2102,
    proxyGid: 3001,
    onlyInbound: [],
    excludeInbound: [span(25), span(4190, 4191), span(4567, 4568)],
    excludeOutbound: [span(4567, 4568)],
    excludeSubnets: [{ family: "ipv4", text: "10.0.0.0/8" }],
  });
});

const created = (by: string) => ({ ...mark, "linkerd.io/created-by": by });
const guesses: [annotations: Annotations, sluice: object, excludes: boolean][] = [
  [mark, { "control-plane-namespace": "emoji" }, true],
  [created("linkerd/helm edge-26.7.1"), { "control-plane-namespace": "emoji" }, true],
  [created("linkerd/cli stable-2.14"), { "control-plane-namespace": ["linkerd", "emoji"] }, true],
  [created("linkerd/proxy-injector edge"), { "control-plane-namespace": "emoji" }, false],
  [{ ...mark, "linkerd.io/inject": "enabled" }, { "control-plane-namespace": ["emoji"] }, false],
  [{ ...mark, "linkerd.io/inject": "ingress" }, { "control-plane-namespace": ["emoji"] }, false],
  [mark, {}, false],
  [mark, { "control-plane-namespace": [] }, false],
  [mark, { "control-plane-namespace": ["linkerd", "linkerd-dev"] }, false],
];

test.each(guesses)(
  "ADD takes a pod with %j under %j for the control plane: %s",
  async (annotations, sluice, excludes) => {
    const world = makeWorld();
    const ports = { "api-server-ports": [16443] };
    await cni(world, "ADD", annotated(annotations, { ...sluice, ...ports }));
    const conf = [span(4567, 4568)];
    expect(intentOf(world)?.excludeOutbound).toEqual(excludes ? [...conf, span(16443)] : conf);
    const said = "taken for the mesh's control plane: the API server's ports are excluded";
    const told = world.lines.filter((line) => "message" in line && line.message === said);
    expect(told).toMatchObject(excludes ? [{ level: "info", ports: [16443] }] : []);
  },
);

test("ADD warns of what may be a control plane in a namespace that is not named", async () => {
  const world = makeWorld();
  await cni(world, "ADD", annotated(created("linkerd/helm edge-26.7.1")));
  expect(world.lines[0]).toMatchObject({ level: "warn", pod: { namespace: "emoji" } });
  expect(JSON.stringify(world.lines[0])).toContain("sluice.control-plane-namespace does not name");
});

const dropping = { "on-invalid-annotation": "drop-entries" };

test("ADD drops single entries when the conf says so, and names each", async () => {
  const world = makeWorld();
  const annotations = {
    ...mark,
    ...says({
      "skip-inbound-ports": "80,abc,+443,, 8443 ,90-80",
      "skip-subnets": "10.0.0.0/8,x",
      "proxy-uid": "+3000",
      "proxy-gid": "staff",
    }),
  };
  expect(await cni(world, "ADD", annotated(annotations, dropping))).toEqual(result);
  expect(intentOf(world)).toMatchObject({
    proxyUid: 3000,
    excludeInbound: [span(80), span(443), span(4190, 4191), span(4567, 4568), span(8443)],
    excludeSubnets: [{ family: "ipv4", text: "10.0.0.0/8" }],
  });
  const warns = world.lines.flatMap((line) => ("message" in line ? [line.message] : []));
  const port = "is not a port (1 to 65535)";
  const key = (name: string) => `config.linkerd.io/${name}:`;
  expect(warns.slice(0, -1).toSorted()).toEqual([
    `${key("proxy-gid")} passed over: "staff" is not an id (1 to 4294967294)`,
    `${key("proxy-uid")} plus signs are passed over`,
    `${key("skip-inbound-ports")} passed over: "abc" ${port}; "" is not a port or a range of ports; "90-80" is not a range of ports (1-65535, lower end first)`,
    `${key("skip-inbound-ports")} plus signs are passed over`,
    `${key("skip-subnets")} passed over: "x" is not a subnet (like 10.0.0.0/8 or fd00::/8)`,
  ]);
});

test("ADD passes denied annotations over when single entries are to be dropped", async () => {
  const world = makeWorld();
  const annotations = { ...mark, ...says({ "skip-inbound-ports": "80", "proxy-gid": "7" }) };
  const sluice = { ...dropping, "deny-annotations": { "*": ["proxy-gid"] } };
  expect(await cni(world, "ADD", annotated(annotations, sluice))).toEqual(result);
  expect(intentOf(world)?.proxyGid).toBe(undefined);
  expect(world.lines[0]).toMatchObject({ level: "warn", message: "annotations are passed over" });
});

/** Values and types that linkerd-cni tolerates, or that stop those pods that would be redirected by them. */
const badConfs: [change: object, problem: string][] = [
  [{ "incoming-proxy-port": undefined }, "linkerd.incoming-proxy-port is missing"],
  [{ "outgoing-proxy-port": "http" }, 'linkerd.outgoing-proxy-port: "http" is not a port'],
  [{ "incoming-proxy-port": 0 }, 'linkerd.incoming-proxy-port: "0" is not a port'],
  [{ "proxy-uid": 0 }, "linkerd.proxy-uid: 0 is not a user id"],
  [{ "proxy-gid": "staff" }, 'linkerd.proxy-gid: "staff" is not a group id'],
  [{ "inbound-ports-to-ignore": ["25 587"] }, '"25 587" is not a port'],
  [{ "subnets-to-ignore": ["x"] }, '"x" is not a subnet'],
  [{ "subnets-to-ignore": "10.0.0.0/8" }, "linkerd.subnets-to-ignore: expected array"],
  [{ "iptables-mode": "bpf" }, "linkerd.iptables-mode: expected one of"],
  [{ ipv6: "true" }, "linkerd.ipv6: expected boolean"],
];

test.each(badConfs)(
  "ADD fails for a conf with %j if the pod has a proxy, and else not",
  async (...row) => {
    const [change, problem] = row;
    const linkerd = { ...conf.linkerd, ...change };
    const withConf = (given: { conf: object }) => ({ conf: { ...given.conf, linkerd } });
    for (const [told, given] of [
      [bare, asking()],
      [pod, annotated({})],
      [away, annotated({}, { "pod-source": "api" })],
      [pod, annotated(mark, { "exclude-namespaces": ["emoji"] })],
    ] as const) {
      const world = makeWorld();
      api(world, told);
      expect(await cni(world, "ADD", withConf(given))).toEqual(result);
      expect(world.lines.at(-1)).toMatchObject({ message: "done" });
      const warning = "the conf is invalid: no pod with a proxy will start";
      const warnings = world.lines.filter((line) => "message" in line && line.message === warning);
      expect(warnings.length).toBe(1);
      expect(JSON.stringify(warnings)).toContain(JSON.stringify(problem).slice(1, -1));
      expect(world.store.records.size).toBe(0);
    }
    for (const given of [asking(), annotated(mark), { conf: {} }]) {
      const world = makeWorld();
      api(world, pod);
      const { stdout } = await cni(world, "ADD", withConf(given));
      expect(JSON.parse(stdout)).toMatchObject({ code: 7, msg: expect.stringContaining(problem) });
      expect(world.asked).toEqual([]);
    }
  },
);

test("ADD warns of what it reads otherwise than it is written in the conf", async () => {
  const world = makeWorld();
  const change = { "inbound-ports-to-ignore": ["25,"], "subnets-to-ignore": ["10.1.2.3/8"] };
  expect(await cni(world, "ADD", withLinkerd(change))).toEqual(result);
  expect(world.lines.slice(0, 2)).toEqual([
    { level: "warn", message: "linkerd.inbound-ports-to-ignore: an empty entry is passed over" },
    {
      level: "warn",
      message: 'linkerd.subnets-to-ignore: "10.1.2.3/8" is read as 10.0.0.0/8',
    },
  ]);
});

test("ADD sets the conf's timeout, and the pod's word goes before it", async () => {
  const linkerd = { ...conf.linkerd, "close-wait-timeout": "1h" };
  const timeouts: [Annotations, number | undefined][] = [
    [mark, 3600],
    [{ ...mark, ...says({ "close-wait-timeout": "30s" }) }, 30],
    [{ ...mark, ...says({ "close-wait-timeout": "0s" }) }, undefined],
    [{ ...mark, ...says({ "close-wait-timeout": "" }) }, 3600],
  ];
  for (const [annotations, seconds] of timeouts) {
    const world = makeWorld();
    const given = annotated(annotations);
    await cni(world, "ADD", { conf: { ...given.conf, linkerd } });
    expect(intentOf(world)?.closeWaitSeconds).toBe(seconds);
    const set = [...world.sysctls.values()].map(Number);
    expect(set).toEqual(seconds === undefined ? [] : [seconds]);
  }
});
