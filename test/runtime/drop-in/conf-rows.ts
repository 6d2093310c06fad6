// Parity: the keys of the conf.
import { injected } from "./level.ts";
import { badConf, linkerd, noAnnotations, noWay, type Row, row, unmarked } from "./row.ts";

const noKubeconfig = "kubernetes.kubeconfig is not set";
export const confRows: readonly Row[] = [
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
    gives: badConf(
      'linkerd.iptables-mode: expected one of "auto", "nft", "legacy", "plain", "", found "bpf"',
    ),
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
  row("kubernetes.kubeconfig", "none: the conf alone, whatever the annotations", {
    top: { kubernetes: undefined },
    annotations: {},
    gives: { requests: 0 },
  }),
  row("kubernetes.kubeconfig", "none, and the annotations are to be asked", {
    top: { kubernetes: undefined },
    sluice: { "pod-source": "annotations" },
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
