// Parity: which pods are redirected, and what else of a pod counts.
import { injected } from "./level.ts";
import { badConf, config, noAnnotations, noWay, type Row, row, unmarked } from "./row.ts";

const proxy = { name: "linkerd-proxy" };
const controlPlane = { "linkerd.io/control-plane-component": "destination" };
const inKubeSystem = "K8S_POD_NAMESPACE=kube-system;K8S_POD_NAME=web";
export const podRows: readonly Row[] = [
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
  row("label linkerd.io/control-plane-component", "the runtime tells: one of two namespaces", {
    annotations: injected({ "linkerd.io/created-by": "linkerd/helm edge-26.7.1" }),
    sluice: { "control-plane-namespace": ["linkerd", "emoji"], "api-server-ports": ["16443"] },
    gives: { rules: { out: ["16443"] }, requests: 0 },
  }),
  row("label linkerd.io/control-plane-component", "an ordinary pod in its namespace", {
    annotations: injected({ "linkerd.io/created-by": "linkerd/proxy-injector edge-26.7.1" }),
    sluice: { "control-plane-namespace": "emoji" },
    gives: { requests: 0 },
  }),
  row("label linkerd.io/control-plane-component", "and skip-outbound-ports", {
    pod: { labels: controlPlane, annotations: config({ "skip-outbound-ports": "25" }) },
    gives: { rules: { out: ["25,443,6443"] }, requests: 3 },
  }),
  row("label linkerd.io/control-plane-component", "usual ports that are none", {
    sluice: { "api-server-ports": [443, "https"] },
    gives: badConf('sluice.api-server-ports: "https" is not a port (1 to 65535)'),
  }),
  row("namespace kube-system", "the pod's, which is marked", {
    args: inKubeSystem,
    annotations: injected(),
    gives: { requests: 0 },
  }),
  row("namespace kube-system", "the pod's, which is not marked", {
    args: inKubeSystem,
    annotations: {},
    gives: { skipped: unmarked, requests: 0 },
  }),
  row("namespace kube-system", "written down", {
    args: inKubeSystem,
    annotations: injected(),
    sluice: { "exclude-namespaces": ["kube-system"] },
    gives: { skipped: "namespace kube-system is excluded", requests: 0 },
  }),
  row("namespace kube-system", "not excluded", {
    args: inKubeSystem,
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
  ...["", "IgnoreUnknown=1", "K8S_POD_NAME=web", "K8S_POD_NAMESPACE=emoji"].map((args) =>
    row("no pod in CNI_ARGS", `a mark in the annotations, and only ${JSON.stringify(args)}`, {
      args,
      annotations: injected(),
      gives: { requests: 0 },
    }),
  ),
];
