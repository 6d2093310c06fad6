// Parity with linkerd-cni, row by row: a key of the conf, an annotation, or a fact of the pod, and what comes of it. README's
// table "Drop-in for linkerd-cni" names the same keys (test/docs holds the one against the other).
import type { Annotations, PodWish } from "../../lab/api-objects.ts";
import { type ConfWish, chartDefault, injected } from "./level.ts";

/** What the rules of one family say; what is not named is as the chart's default makes it. */
export type Rules = {
  readonly uid?: number;
  readonly gid?: number;
  readonly inPort?: number;
  readonly outPort?: number;
  /** Values of --dports, one a rule. */
  readonly in?: readonly string[];
  readonly out?: readonly string[];
  readonly from?: readonly string[];
  readonly only?: readonly number[];
};

/** What comes of an ADD. */
export type Gives = {
  readonly rules?: Rules;
  readonly ipv6?: Rules;
  readonly skipped?: string;
  readonly error?: readonly [code: number, msg: string, details?: string];
  readonly warns?: readonly string[];
  /** To the API; two where a meshed pod is read from it. */
  readonly requests?: number;
};

export type Row = ConfWish & {
  /** As README names it. */
  readonly key: string;
  readonly when: string;
  readonly pod?: PodWish;
  readonly namespace?: Annotations;
  readonly args?: string;
  readonly gives: Gives;
};

type More = Omit<Row, "key" | "when">;

const row = (key: string, when: string, more: More): Row => ({ key, when, ...more });

const linkerd = (keys: Readonly<Record<string, unknown>>) => ({
  linkerd: { ...chartDefault, ...keys },
});
const badConf = (problem: string): Gives => ({
  error: [7, `invalid conf: ${problem}`],
  requests: 0,
});

const noKubeconfig = "kubernetes.kubeconfig is not set";
const noAnnotations =
  "the runtime sent no io.kubernetes.cri.pod-annotations (set it in the entry's capabilities)";
const noWay = (details: string): Gives => ({
  error: [7, "invalid conf: there is no way to know the pod", details],
  requests: 0,
});
const unmarked = "no annotation linkerd.io/proxy-version: the pod has no proxy";

const confRows: readonly Row[] = [
  row("linkerd.incoming-proxy-port", "5143", {
    ...linkerd({ "incoming-proxy-port": 5143 }),
    gives: { rules: { inPort: 5143 } },
  }),
  row("linkerd.incoming-proxy-port", '"5143"', {
    ...linkerd({ "incoming-proxy-port": "5143" }),
    gives: { rules: { inPort: 5143 } },
  }),
  row("linkerd.incoming-proxy-port", "0", {
    ...linkerd({ "incoming-proxy-port": 0 }),
    gives: badConf('linkerd.incoming-proxy-port: "0" is not a port (1 to 65535)'),
  }),
  row("linkerd.outgoing-proxy-port", "5140", {
    ...linkerd({ "outgoing-proxy-port": 5140 }),
    gives: { rules: { outPort: 5140 } },
  }),
  row("linkerd.outgoing-proxy-port", "none", {
    ...linkerd({ "outgoing-proxy-port": undefined }),
    gives: badConf("linkerd.outgoing-proxy-port is missing"),
  }),
  row("linkerd.proxy-uid", '"3000"', {
    ...linkerd({ "proxy-uid": "3000" }),
    gives: { rules: { uid: 3000 } },
  }),
  row("linkerd.proxy-uid", "0", {
    ...linkerd({ "proxy-uid": 0 }),
    gives: badConf("linkerd.proxy-uid: 0 is not a user id (1 to 4294967294)"),
  }),
  row("linkerd.proxy-gid", "2103", {
    ...linkerd({ "proxy-gid": 2103 }),
    gives: { rules: { gid: 2103 } },
  }),
  row("linkerd.proxy-gid", "-1", { ...linkerd({ "proxy-gid": -1 }), gives: {} }),
  row("linkerd.ports-to-redirect", "two ports", {
    ...linkerd({ "ports-to-redirect": [8080, "80"] }),
    gives: { rules: { only: [80, 8080] } },
  }),
  row("linkerd.inbound-ports-to-ignore", "ports and ranges in any order", {
    ...linkerd({ "inbound-ports-to-ignore": ["9000", 25, "80-90,85-95", "4190-4191"] }),
    gives: { rules: { in: ["25,80:95,4190,4191,9000"] } },
  }),
  row("linkerd.outbound-ports-to-ignore", "galera's", {
    ...linkerd({ "outbound-ports-to-ignore": ["4567", "4568"] }),
    gives: { rules: { out: ["4567,4568"] } },
  }),
  row("linkerd.outbound-ports-to-ignore", "an entry that is no port", {
    ...linkerd({ "outbound-ports-to-ignore": ["80", "abc"] }),
    gives: badConf('linkerd.outbound-ports-to-ignore: "abc" is not a port (1 to 65535)'),
  }),
  row("linkerd.subnets-to-ignore", "of both families, in a pod that has both", {
    ...linkerd({ ipv6: true, "subnets-to-ignore": ["fd00::/8", "10.1.2.3/8"] }),
    gives: { rules: { from: ["10.0.0.0/8"] }, ipv6: { from: ["fd00::/8"] } },
  }),
  row("linkerd.subnets-to-ignore", "all there are", {
    ...linkerd({ "subnets-to-ignore": ["0.0.0.0/0"] }),
    gives: {
      rules: { from: ["0.0.0.0/0"] },
      warns: ["all sources are excluded: what comes in passes the proxy by"],
    },
  }),
  row("linkerd.use-wait-flag", "true", { ...linkerd({ "use-wait-flag": true }), gives: {} }),
  row("linkerd.iptables-mode", "legacy", {
    ...linkerd({ "iptables-mode": "legacy" }),
    gives: {},
  }),
  row("linkerd.iptables-mode", "plain", { ...linkerd({ "iptables-mode": "plain" }), gives: {} }),
  row("linkerd.iptables-mode", "another word", {
    ...linkerd({ "iptables-mode": "bpf" }),
    gives: badConf('linkerd.iptables-mode: Invalid input, found "bpf"'),
  }),
  row("linkerd.ipv6", "true", { ...linkerd({ ipv6: true }), gives: { ipv6: {} } }),
  row("linkerd.ipv6", "false, in a pod that has IPv6", {
    top: {
      prevResult: {
        cniVersion: "1.1.0",
        ips: [{ address: "10.1.2.3/24" }, { address: "fd00::3/64" }],
      },
    },
    gives: {
      warns: ["the pod has IPv6 addresses and linkerd.ipv6 is off: they pass the proxy by"],
    },
  }),
  row("kubernetes.kubeconfig", "a file that is not there", {
    top: { kubernetes: { kubeconfig: "/nonexistent/kubeconfig" } },
    gives: {
      error: [
        103,
        "kubeconfig /nonexistent/kubeconfig: cannot be read: ENOENT: no such file or directory, open '/nonexistent/kubeconfig'",
        "the pod cannot be read without it; see that the node agent runs and has written it",
      ],
      requests: 0,
    },
  }),
  row("kubernetes.kubeconfig", "none, and no annotations: every pod is redirected", {
    top: { kubernetes: undefined },
    pod: { containers: [{ name: "app" }] },
    gives: { requests: 0 },
  }),
  row("kubernetes.kubeconfig", "none, and the annotations of a pod without a proxy", {
    top: { kubernetes: undefined },
    annotations: {},
    gives: { skipped: unmarked, requests: 0 },
  }),
  row("kubernetes.kubeconfig", "an empty one, and no annotations", {
    top: { kubernetes: { kubeconfig: "" } },
    gives: noWay(`${noAnnotations}, and ${noKubeconfig}`),
  }),
  row("kubernetes.kubeconfig", "none, and only the API is asked", {
    top: { kubernetes: undefined },
    sluice: { "pod-source": "api" },
    annotations: injected(),
    gives: noWay(noKubeconfig),
  }),
  row("other keys", "some at each place", {
    top: { policy: { type: "k8s", k8s_auth_token: "t" }, logLevel: "x" },
    ...linkerd({ "proxy-id": 1 }),
    sluice: { "pod-sauce": "api" },
    gives: { warns: ["the conf has keys that nobody reads"] },
  }),
];

const config = (entries: Annotations): Annotations =>
  Object.fromEntries(
    Object.entries(entries).map(([key, text]) => [`config.linkerd.io/${key}`, text]),
  );
const say = (entries: Annotations) => ({ pod: { annotations: config(entries) } });
const badAnnotation = (key: string, problem: string): Gives => ({
  error: [
    103,
    `pod emoji/web has annotations that cannot be honoured: config.linkerd.io/${key}: ${problem}`,
    "correct or remove them",
  ],
});
const evens = Array.from({ length: 16 }, (_, i) => 100 + 2 * i);
const spans = Array.from({ length: 8 }, (_, i) => `${1000 + 10 * i}-${1004 + 10 * i}`);
const colons = spans.map((span) => span.replace("-", ":"));
const replaced =
  "config.linkerd.io/skip-outbound-ports replaces the conf's outbound ports 4567,9000-9010";
const withOutbound = linkerd({ "outbound-ports-to-ignore": ["4567", "9000-9010"] });

const skipInbound = "config.linkerd.io/skip-inbound-ports";
const skipOutbound = "config.linkerd.io/skip-outbound-ports";
const skipSubnets = "config.linkerd.io/skip-subnets";
const annotationRows: readonly Row[] = [
  row(skipInbound, "9001: added to the conf's", {
    ...say({ "skip-inbound-ports": "9001" }),
    gives: { rules: { in: ["4190,4191,9001"] } },
  }),
  row(skipInbound, "`80, 443`", {
    ...say({ "skip-inbound-ports": "80, 443" }),
    gives: { rules: { in: ["80,443,4190,4191"] } },
  }),
  row(skipInbound, "`80-80`", {
    ...say({ "skip-inbound-ports": "80-80" }),
    gives: { rules: { in: ["80,4190,4191"] } },
  }),
  row(skipInbound, "overlaps", {
    ...say({ "skip-inbound-ports": "80-90,85,88-95,80" }),
    gives: { rules: { in: ["80:95,4190,4191"] } },
  }),
  row(skipInbound, "sixteen ports, besides two of the conf", {
    ...say({ "skip-inbound-ports": evens.join() }),
    gives: { rules: { in: [evens.slice(0, 15).join(), `${evens[15]},4190,4191`] } },
  }),
  row(skipInbound, "eight ranges", {
    ...say({ "skip-inbound-ports": spans.join() }),
    gives: { rules: { in: [colons.slice(0, 7).join(), `${colons[7]},4190,4191`] } },
  }),
  row(skipInbound, "only the namespace's", {
    namespace: config({ "skip-inbound-ports": "25" }),
    gives: { rules: { in: ["25,4190,4191"] } },
  }),
  row(skipInbound, "the name of a port", {
    ...say({ "skip-inbound-ports": "80,http" }),
    gives: badAnnotation("skip-inbound-ports", '"http" is not a port (1 to 65535)'),
  }),
  row(skipInbound, "the name of a port, which is only warned of", {
    ...say({ "skip-inbound-ports": "80,http", "proxy-gid": "2103" }),
    sluice: { "on-invalid-annotation": "warn" },
    gives: { rules: { gid: 2103 }, warns: ["annotations are passed over"] },
  }),
  row(skipInbound, "denied in the pod's namespace", {
    ...say({ "skip-inbound-ports": "80" }),
    sluice: { "deny-annotations": { emoji: ["skip-inbound-ports"], "*": [] } },
    gives: badAnnotation("skip-inbound-ports", "is not allowed in this namespace"),
  }),
  row(skipInbound, "denied in all namespaces but the pod's", {
    ...say({ "skip-inbound-ports": "80" }),
    sluice: { "deny-annotations": { emoji: [], "*": ["skip-inbound-ports"] } },
    gives: { rules: { in: ["80,4190,4191"] } },
  }),
  row(skipOutbound, "25: in the place of the conf's", {
    ...withOutbound,
    ...say({ "skip-outbound-ports": "25" }),
    gives: { rules: { out: ["25"] }, warns: [replaced] },
  }),
  row(skipOutbound, "`1-2999,3001-8080,8082-65535`", {
    ...say({ "skip-outbound-ports": "1-2999,3001-8080,8082-65535" }),
    gives: { rules: { out: ["1:2999,3001:8080,8082:65535"] } },
  }),
  row(skipOutbound, "the pod's goes before the namespace's", {
    ...say({ "skip-outbound-ports": "80" }),
    namespace: config({ "skip-outbound-ports": "443" }),
    gives: { rules: { out: ["80"] } },
  }),
  row(skipOutbound, "an empty one is not set", {
    ...withOutbound,
    ...say({ "skip-outbound-ports": "" }),
    gives: { rules: { out: ["4567,9000:9010"] } },
  }),
  row(skipOutbound, "a key that is almost right", {
    pod: { annotations: { "linkerd.io/skip-outbound-ports": "25" } },
    gives: {
      warns: [
        "annotation linkerd.io/skip-outbound-ports is not known; config.linkerd.io/skip-outbound-ports is",
      ],
    },
  }),
  row(skipSubnets, "of both families, in a pod that has both", {
    ...linkerd({ ipv6: true }),
    ...say({ "skip-subnets": "fd00::1/8, 10.1.2.3/8,172.17.0.1/32" }),
    gives: { rules: { from: ["10.0.0.0/8", "172.17.0.1/32"] }, ipv6: { from: ["fd00::/8"] } },
  }),
  row(skipSubnets, "an address", {
    ...say({ "skip-subnets": "010.0.0.1/8" }),
    gives: badAnnotation(
      "skip-subnets",
      '"010.0.0.1/8" is not a subnet (like 10.0.0.0/8 or fd00::/8)',
    ),
  }),
  row("config.linkerd.io/proxy-uid", "3000", {
    ...say({ "proxy-uid": "3000" }),
    gives: { rules: { uid: 3000 } },
  }),
  row("config.linkerd.io/proxy-uid", "root", {
    ...say({ "proxy-uid": "root" }),
    gives: badAnnotation("proxy-uid", '"root" is not an id (1 to 4294967294)'),
  }),
  row("config.linkerd.io/proxy-gid", "2103, of the namespace", {
    namespace: config({ "proxy-gid": "2103" }),
    gives: { rules: { gid: 2103 } },
  }),
  row("config.linkerd.io/inbound-port", "5143", {
    ...say({ "inbound-port": "5143" }),
    gives: { rules: { inPort: 5143 } },
  }),
  row("config.linkerd.io/outbound-port", "5140", {
    ...say({ "outbound-port": "5140" }),
    gives: { rules: { outPort: 5140 } },
  }),
  row("config.linkerd.io/admin-port", "5191", {
    ...say({ "admin-port": "5191" }),
    gives: { rules: { in: ["4190,4191,5191"] } },
  }),
  row("config.linkerd.io/control-port", "5190", {
    ...say({ "control-port": "5190" }),
    gives: { rules: { in: ["4190,4191,5190"] } },
  }),
  row("config.linkerd.io/close-wait-timeout", "an hour, whose rules are as any pod's", {
    ...say({ "close-wait-timeout": "1h" }),
    gives: {},
  }),
  row("config.linkerd.io/close-wait-timeout", "no duration", {
    ...say({ "close-wait-timeout": "soon" }),
    gives: badAnnotation(
      "close-wait-timeout",
      '"soon" is not a duration of a second or more (like 30s or 1h)',
    ),
  }),
];

const proxy = { name: "linkerd-proxy" };
const controlPlane = { "linkerd.io/control-plane-component": "destination" };
const podRows: readonly Row[] = [
  row("container linkerd-proxy", "an ordinary one", { gives: {} }),
  row("container linkerd-proxy", "a native sidecar", {
    pod: { containers: [{ name: "app" }], initContainers: [proxy, { name: "db-wait" }] },
    gives: {},
  }),
  row("container linkerd-proxy", "none", {
    pod: { containers: [{ name: "app" }, { name: "envoy" }] },
    gives: { skipped: "no container linkerd-proxy", requests: 1 },
  }),
  row("container linkerd-proxy", "the runtime says that the injector was there", {
    annotations: injected(config({ "skip-inbound-ports": "25" })),
    gives: { rules: { in: ["25,4190,4191"] }, requests: 0 },
  }),
  row("container linkerd-proxy", "the runtime says that the injector was not", {
    annotations: { app: "web" },
    gives: {
      skipped: unmarked,
      requests: 0,
    },
  }),
  row("container linkerd-proxy", "the API goes before the runtime, if it is wished", {
    annotations: {},
    sluice: { "pod-source": "api" },
    gives: {},
  }),
  row("container linkerd-proxy", "only the runtime is asked, and says nothing", {
    sluice: { "pod-source": "annotations" },
    gives: noWay(noAnnotations),
  }),
  row("init container linkerd-init", "there", {
    pod: { initContainers: [{ name: "linkerd-init" }] },
    gives: {
      skipped: "the pod has an init container linkerd-init, which sets up the rules itself",
      requests: 1,
    },
  }),
  row("init containers before the proxy", "one", {
    pod: { initContainers: [{ name: "db-wait" }, { name: "linkerd-network-validator" }] },
    gives: {
      warns: [
        "init containers run before the proxy and have no network but excluded ports (exclude their ports, or run them as uid 2102): db-wait",
      ],
    },
  }),
  row("securityContext.runAsUser", "the proxy's, another than the conf's", {
    pod: { containers: [{ name: "app" }, { ...proxy, runAsUser: 3000 }] },
    gives: {
      rules: { uid: 3000 },
      warns: ["the proxy runs as uid 3000, not 2102: 3000 is exempted"],
    },
  }),
  row("securityContext.runAsUser", "the whole pod's", {
    pod: { runAsUser: 3000, containers: [{ name: "app", runAsUser: 1000 }, proxy] },
    gives: {
      rules: { uid: 3000 },
      warns: ["the proxy runs as uid 3000, not 2102: 3000 is exempted"],
    },
  }),
  row("securityContext.runAsUser", "an application's, the same as the proxy's", {
    pod: { containers: [{ name: "app", runAsUser: 2102 }, proxy] },
    gives: { warns: ["containers with the proxy's uid 2102 pass the proxy by: app"] },
  }),
  row("hostNetwork", "true", {
    pod: { hostNetwork: true },
    gives: { skipped: "the pod is on the node's network", requests: 1 },
  }),
  row("label linkerd.io/control-plane-component", "the API knows its own ports", {
    pod: { labels: controlPlane },
    gives: { rules: { out: ["443,6443"] }, requests: 3 },
  }),
  row("label linkerd.io/control-plane-component", "the runtime tells: by the namespace", {
    annotations: injected(),
    sluice: { "control-plane-namespace": "emoji", "api-server-ports": [8443, "443"] },
    gives: { rules: { out: ["443,8443"] }, requests: 0 },
  }),
  row("label linkerd.io/control-plane-component", "and skip-outbound-ports", {
    pod: { labels: controlPlane, annotations: config({ "skip-outbound-ports": "25" }) },
    gives: { rules: { out: ["25,443,6443"] }, requests: 3 },
  }),
  row("label linkerd.io/control-plane-component", "usual ports that are none", {
    sluice: { "api-server-ports": [443, "https"] },
    gives: badConf('sluice.api-server-ports: "https" is not a port (1 to 65535)'),
  }),
  row("namespace kube-system", "the pod's", {
    args: "K8S_POD_NAMESPACE=kube-system;K8S_POD_NAME=web",
    gives: { skipped: "namespace kube-system is excluded", requests: 0 },
  }),
  row("namespace kube-system", "not excluded", {
    args: "K8S_POD_NAMESPACE=kube-system;K8S_POD_NAME=web",
    annotations: injected(),
    sluice: { "exclude-namespaces": [] },
    gives: { requests: 0 },
  }),
  row("the agent's own pod", "by namespace and name", {
    sluice: { "agent-pod": { namespace: "emoji", "name-prefix": "we" } },
    gives: { skipped: "the pod is the node agent's own", requests: 0 },
  }),
  row("the agent's own pod", "another of its namespace", {
    sluice: { "agent-pod": { namespace: "emoji", "name-prefix": "sluice-agent-" } },
    gives: {},
  }),
  row("no pod in CNI_ARGS", "podman, ctr", {
    args: "IgnoreUnknown=1",
    gives: { skipped: "the runtime names no pod", requests: 0 },
  }),
];

export const rows: readonly Row[] = [...confRows, ...annotationRows, ...podRows];

/** Keys of README's table that one ADD does not show; calls.test.ts has a list of tests for each. */
export const callKeys = ["linkerd.simulate", "log_level", "CHECK", "DEL", "STATUS, GC"] as const;
