// What a pod's annotations make of the conf's intent.
import { expect, test } from "vitest";
import { applyAnnotations } from "../../../src/mesh/linkerd/annotation.ts";
import type { Intent } from "../../../src/mesh/linkerd/intent.ts";
import type { Annotations, PodFacts } from "../../../src/mesh/pod.ts";
import { leastIntent } from "../../lab/case.ts";

const span = (from: number, to = from) => ({ from, to });
const conf: Intent = {
  ...leastIntent,
  excludeInbound: [span(4190, 4191)],
  excludeOutbound: [span(4567, 4568), span(9000)],
  excludeSubnets: [{ family: "ipv4", text: "192.168.0.0/16" }],
};
const silent: PodFacts = {
  annotations: {},
  namespaceAnnotations: {},
  spec: undefined,
};
const policy = { denied: [], dropEntries: false, apiServerPorts: [] };

const prefixed = (entries: Record<string, string>): Annotations =>
  Object.fromEntries(
    Object.entries(entries).map(([key, text]) => [`config.linkerd.io/${key}`, text]),
  );

const replaced =
  "config.linkerd.io/skip-outbound-ports replaces the conf's outbound ports 4567-4568,9000";
const ten = { family: "ipv4", text: "10.0.0.0/8" } as const;
const fd = { family: "ipv6", text: "fd00::/8" } as const;
const set: [entries: Record<string, string>, change: Partial<Intent>, notes?: string[]][] = [
  [{}, {}],
  [{ "skip-inbound-ports": "9001" }, { excludeInbound: [span(4190, 4191), span(9001)] }],
  [{ "skip-inbound-ports": "80, 4189" }, { excludeInbound: [span(80), span(4189, 4191)] }],
  [{ "skip-outbound-ports": "5000,25" }, { excludeOutbound: [span(25), span(5000)] }, [replaced]],
  [{ "skip-subnets": "fd00::/8,10.0.0.0/8" }, { excludeSubnets: [ten, fd] }],
  [
    { "skip-subnets": "fd00::1/8,10.1.2.3/8,192.0.2.1" },
    { excludeSubnets: [ten, { family: "ipv4", text: "192.0.2.1/32" }, fd] },
    [
      'config.linkerd.io/skip-subnets: "fd00::1/8" is read as fd00::/8; "10.1.2.3/8" is read as 10.0.0.0/8; "192.0.2.1" is read as 192.0.2.1/32',
    ],
  ],
  [{ "proxy-uid": "3000" }, { proxyUid: 3000 }],
  [{ "proxy-gid": "3001" }, { proxyGid: 3001 }],
  [
    { "inbound-port": "5143", "outbound-port": "5140" },
    { inboundPort: 5143, outboundPort: 5140 },
  ],
  [{ "admin-port": "5191" }, { excludeInbound: [span(4190, 4191), span(5191)] }],
  [{ "control-port": "4192" }, { excludeInbound: [span(4190, 4192)] }],
  [{ "close-wait-timeout": "1h30m5s" }, { closeWaitSeconds: 5405 }],
  [{ "close-wait-timeout": "1.1s2.2s" }, { closeWaitSeconds: 3 }],
  [{ "close-wait-timeout": "1.5m500ms" }, { closeWaitSeconds: 90 }],
  [{ "close-wait-timeout": "1.5h" }, { closeWaitSeconds: 5400 }],
  [{ "close-wait-timeout": "0.1m6500ms" }, { closeWaitSeconds: 12 }],
  [{ "close-wait-timeout": "1999ms" }, { closeWaitSeconds: 1 }],
  [{ "close-wait-timeout": "999ms" }, {}],
  [{ "close-wait-timeout": "0s" }, {}],
  [{ "close-wait-timeout": "0" }, {}],
  [{ "admin-port": "05191" }, { excludeInbound: [span(4190, 4191), span(5191)] }],
  [{ "proxy-uid": "0000003000" }, { proxyUid: 3000 }],
  [{ "proxy-gid": "-1" }, {}],
  [{ "proxy-gid": "0" }, {}],
  [{ "proxy-gid": "000" }, {}],
  [{ "skip-outbound-ports": "" }, {}],
];

test.each(set)("applyAnnotations() applies %j", (entries, change, notes = []) => {
  const pod = { ...silent, annotations: prefixed(entries) };
  expect(applyAnnotations(conf, pod, policy)).toEqual({
    intent: { ...conf, ...change },
    refusals: [],
    notes,
  });
});

test("applyAnnotations() has no note when there is no outbound list to replace", () => {
  const intent = { ...conf, excludeOutbound: [] };
  const pod = { ...silent, annotations: prefixed({ "skip-outbound-ports": "80" }) };
  const changed = { ...intent, excludeOutbound: [span(80)] };
  expect(applyAnnotations(intent, pod, policy)).toEqual({
    intent: changed,
    refusals: [],
    notes: [],
  });
});

const orders: [when: string, own: string | undefined, namespace: string, uid: number][] = [
  ["only the namespace says it", undefined, "3000", 3000],
  ["both say it: the pod", "4000", "3000", 4000],
  ["the pod's value is empty", "", "3000", 3000],
  ["both are empty", "", "", 2102],
];

test.each(orders)(
  "applyAnnotations() asks pod, namespace, conf when %s",
  (...[, own, namespace, uid]) => {
    const annotations = own === undefined ? {} : prefixed({ "proxy-uid": own });
    const pod = {
      ...silent,
      annotations,
      namespaceAnnotations: prefixed({ "proxy-uid": namespace }),
    };
    expect(applyAnnotations(conf, pod, policy).intent).toEqual({ ...conf, proxyUid: uid });
  },
);

const noPort = "is not a port (1 to 65535)";
const noId = "is not an id (1 to 4294967294)";
const noTime = "is not a duration of a second or more (like 30s or 1h)";
const noSubnet = "is not a subnet (like 10.0.0.0/8 or fd00::/8)";
const refused: [key: string, text: string, problem: string][] = [
  ["skip-inbound-ports", "http", `"http" ${noPort}`],
  ["skip-outbound-ports", "80,abc,443", `"abc" ${noPort}`],
  ["skip-outbound-ports", "0", `"0" ${noPort}`],
  [
    "skip-outbound-ports",
    "80\n-A OUTPUT -j ACCEPT",
    '"80\\n-A OUTPUT -j ACCEPT" is not a port or a range of ports',
  ],
  ["skip-subnets", "10.0.0.0/33", `"10.0.0.0/33" ${noSubnet}`],
  ["skip-subnets", "10.0.0.0/8,", `"" ${noSubnet}`],
  ["proxy-uid", "root", `"root" ${noId}`],
  ["proxy-uid", "0", `"0" ${noId}`],
  ["proxy-gid", "4294967295", `"4294967295" ${noId}`],
  ["inbound-port", "70000", `"70000" ${noPort}`],
  ["admin-port", "80-90", `"80-90" ${noPort}`],
  ["proxy-gid", "-2", `"-2" ${noId}`],
  ["proxy-gid", "-01", `"-01" ${noId}`],
  ["proxy-gid", "0x0", `"0x0" ${noId}`],
  ["proxy-gid", "2102 ", `"2102 " ${noId}`],
  ["proxy-gid", "+0", `"+0" ${noId}`],
  ["proxy-uid", "-1", `"-1" ${noId}`],
  ["proxy-uid", "00", `"00" ${noId}`],
  ["inbound-port", " 5000", `" 5000" ${noPort}`],
  ["close-wait-timeout", "-5s", `"-5s" ${noTime}`],
  ["close-wait-timeout", "1h 5m", `"1h 5m" ${noTime}`],
  ["close-wait-timeout", "600h", `"600h" ${noTime}`],
  ["close-wait-timeout", "3600", `"3600" ${noTime}`],
];

test.each(refused)(
  "applyAnnotations() refuses %s %j and leaves the intent",
  (key, text, problem) => {
    const pod = { ...silent, annotations: prefixed({ [key]: text }) };
    const refusals = [{ annotation: `config.linkerd.io/${key}`, problem }];
    expect(applyAnnotations(conf, pod, policy)).toEqual({ intent: conf, refusals, notes: [] });
  },
);

test("applyAnnotations() says so when it is the namespace's value that it refuses", () => {
  const namespaceAnnotations = prefixed({ "proxy-gid": "staff" });
  const { refusals } = applyAnnotations(conf, { ...silent, namespaceAnnotations }, policy);
  const annotation = "config.linkerd.io/proxy-gid of the namespace";
  expect(refusals).toEqual([{ annotation, problem: `"staff" ${noId}` }]);
});

test("applyAnnotations() says when it is the namespace that is wrong", () => {
  const pod = { ...silent, namespaceAnnotations: prefixed({ "proxy-uid": "root" }) };
  expect(applyAnnotations(conf, pod, policy).refusals).toEqual([
    { annotation: "config.linkerd.io/proxy-uid of the namespace", problem: `"root" ${noId}` },
  ]);
});

const quoted: [text: string, problem: string][] = [
  ["80\u202e", `"80\\u202e" ${noPort}`],
  ["80\u00a0", `"80\\u00a0" ${noPort}`],
  ["x".repeat(400), `"${"x".repeat(149)} ... ${"x".repeat(72)}" ${noPort}`],
];

test.each(quoted)("applyAnnotations() quotes %j so that it can be read", (text, problem) => {
  const pod = { ...silent, annotations: prefixed({ "skip-inbound-ports": text }) };
  const annotation = "config.linkerd.io/skip-inbound-ports";
  expect(applyAnnotations(conf, pod, policy).refusals).toEqual([{ annotation, problem }]);
});

test("applyAnnotations() refuses what the namespace may not set, and takes the rest", () => {
  const annotations = prefixed({ "skip-inbound-ports": "80", "proxy-uid": "3000" });
  const denying = { ...policy, denied: ["skip-inbound-ports"] };
  expect(applyAnnotations(conf, { ...silent, annotations }, denying)).toEqual({
    intent: { ...conf, proxyUid: 3000 },
    refusals: [
      {
        annotation: "config.linkerd.io/skip-inbound-ports",
        problem: "is not allowed in this namespace",
      },
    ],
    notes: [],
  });
});

test("applyAnnotations() lets the control plane reach the API server", () => {
  const reaching = { ...policy, apiServerPorts: [span(443), span(6443)] };
  const { intent } = applyAnnotations(conf, silent, reaching);
  const ports = [span(443), span(4567, 4568), span(6443), span(9000)];
  expect(intent).toEqual({ ...conf, excludeOutbound: ports });
});

const users: [when: string, runAsUser: number | undefined, uid: number, notes: string[]][] = [
  ["it says none", undefined, 2102, []],
  ["it is the conf's", 2102, 2102, []],
  ["it is another", 5000, 5000, ["the proxy runs as uid 5000, not 2102: 5000 is exempted"]],
];

test.each(users)(
  "applyAnnotations() exempts whom the proxy runs as when %s",
  (...[, runAsUser, uid, notes]) => {
    const spec = {
      hostNetwork: false,
      labels: {},
      containers: [{ name: "linkerd-proxy", runAsUser }],
      initContainers: [],
    };
    expect(applyAnnotations(conf, { ...silent, spec }, policy)).toEqual({
      intent: { ...conf, proxyUid: uid },
      refusals: [],
      notes,
    });
  },
);

test.each([
  [0, "0 (root) cannot be exempted: other containers run as root too"],
  [4_294_967_295, `4294967295 ${noId}`],
  [-1, `-1 ${noId}`],
  [2102.5, `2102.5 ${noId}`],
])("applyAnnotations() refuses a proxy that runs as %d", (runAsUser, problem) => {
  const containers = [{ name: "linkerd-proxy", runAsUser }];
  const spec = { hostNetwork: false, labels: {}, containers, initContainers: [] };
  expect(applyAnnotations(conf, { ...silent, spec }, policy)).toEqual({
    intent: conf,
    refusals: [{ annotation: "securityContext.runAsUser of the proxy", problem }],
    notes: [],
  });
});

const typos: [key: string, meant: string | undefined][] = [
  ["config.linkerd.io/skip-oubound-ports", "skip-outbound-ports"],
  ["config.linkerd.io/skip-outbound-port", "skip-outbound-ports"],
  ["config.linkerd.io/skip-outbound-portss", "skip-outbound-ports"],
  ["config.linkerd.io/skip-inbuond-ports", "skip-inbound-ports"],
  ["config.linkerd.io/skip_inbound_ports", "skip-inbound-ports"],
  ["config.linkerd.io/Skip-Inbound-Ports", "skip-inbound-ports"],
  ["config.linkerd.io/skip-subnet", "skip-subnets"],
  ["config.linkerd.io/proxy-uuid", "proxy-uid"],
  ["config.linkerd.io/inbound-ports", "inbound-port"],
  ["config.linkerd.com/skip-inbound-ports", "skip-inbound-ports"],
  ["linkerd.io/skip-outbound-ports", "skip-outbound-ports"],
  ["config.alpha.linkerd.io/proxy-uid", "proxy-uid"],
  ["config.linkerd.io/proxy-uid", undefined],
  ["config.linkerd.io/opaque-ports", undefined],
  ["config.linkerd.io/proxy-log-level", undefined],
  ["linkerd.io/inject", undefined],
  ["example.com/skip-outbound-ports", undefined],
  ["skip-outbound-ports", undefined],
  [`${"linkerd".repeat(10_000)}/skip-outbound-ports`, undefined],
];

test.each(typos)("applyAnnotations() on the key %s knows which is meant: %s", (key, meant) => {
  const pod = { ...silent, annotations: { [key]: "3000" } };
  const notes =
    meant === undefined ? [] : [`annotation ${key} is not known; config.linkerd.io/${meant} is`];
  expect(applyAnnotations(conf, pod, policy).notes).toEqual(notes);
});

test("applyAnnotations() tells of the namespace's slips too, and of ten at most", () => {
  const slips = (prefix: string, count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`${prefix}${letter(i)}`, "1"]));
  const letter = (i: number) => String.fromCharCode(97 + i);
  const pod = {
    ...silent,
    annotations: slips("config.linkerd.io/admin-por", 9),
    namespaceAnnotations: slips("linkerd.io/proxy-ui", 9),
  };
  const { notes } = applyAnnotations(conf, pod, policy);
  expect([notes.length, notes[0], notes.at(-1)]).toEqual([
    10,
    "annotation linkerd.io/proxy-uia is not known; config.linkerd.io/proxy-uid is",
    "annotation config.linkerd.io/admin-pora is not known; config.linkerd.io/admin-port is",
  ]);
});

test("applyAnnotations() takes no time over what looks like a slip and is long", () => {
  const key = `${"linkerd".repeat(20_000)}/proxy-uid`;
  const began = performance.now();
  applyAnnotations(conf, { ...silent, annotations: { [key]: "1" } }, policy);
  expect(performance.now() - began).toBeLessThan(100);
});

test("applyAnnotations() looks for such keys in the namespace too, and tells of ten at most", () => {
  const keys = Array.from({ length: 12 }, (_, i) => `${"abcdefghijkl"[i]}.linkerd.io/proxy-uid`);
  const namespaceAnnotations = Object.fromEntries(keys.map((key) => [key, "1"]));
  const { notes } = applyAnnotations(conf, { ...silent, namespaceAnnotations }, policy);
  expect(notes).toEqual(
    keys
      .slice(0, 10)
      .map((key) => `annotation ${key} is not known; config.linkerd.io/proxy-uid is`),
  );
});
