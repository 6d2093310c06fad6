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
  ...[-1, "-1", 0, "0", "00", null].map((gid) =>
    row("linkerd.proxy-gid", JSON.stringify(gid), { ...linkerd({ "proxy-gid": gid }), gives: {} }),
  ),
  ...["0x0", "+0", "2102 ", "-01"].map((gid) =>
    row("linkerd.proxy-gid", JSON.stringify(gid), {
      ...linkerd({ "proxy-gid": gid }),
      gives: badConf(
        `linkerd.proxy-gid: ${JSON.stringify(gid)} is not a group id (1 to 4294967294, or -1 for none)`,
      ),
    }),
  ),
  row("linkerd.proxy-gid", "zeros in front of every number", {
    ...linkerd({
      "proxy-gid": "02103",
      "proxy-uid": "003000",
      "incoming-proxy-port": "05143",
      "outgoing-proxy-port": "05140",
      "inbound-ports-to-ignore": ["0025", "0080-0090"],
    }),
    sluice: { "timeout-seconds": "0020" },
    gives: {
      rules: { uid: 3000, gid: 2103, inPort: 5143, outPort: 5140, in: ["25,80:90"] },
    },
  }),
  row("linkerd.ports-to-redirect", "two ports", {
    ...linkerd({ "ports-to-redirect": [8080, "80"] }),
    gives: { rules: { only: [80, 8080] } },
  }),
  row("linkerd.inbound-ports-to-ignore", "ports and ranges in any order", {
    ...linkerd({ "inbound-ports-to-ignore": ["9000", 25, "80-90,85-95", "4190-4191"] }),
    gives: { rules: { in: ["25,80:95,4190,4191,9000"] } },
  }),
  row("linkerd.inbound-ports-to-ignore", "empty entries", {
    ...linkerd({ "inbound-ports-to-ignore": ["25,", "", null, "4190"] }),
    gives: {
      rules: { in: ["25,4190"] },
      warns: ["linkerd.inbound-ports-to-ignore: an empty entry is passed over"],
    },
  }),
  row("linkerd.inbound-ports-to-ignore", "two ports without a comma, and a pod that has no proxy", {
    ...linkerd({ "inbound-ports-to-ignore": ["25 587"], "proxy-uid": 0, ipv6: "no" }),
    pod: { containers: [{ name: "app" }] },
    gives: {
      skipped: "no container linkerd-proxy",
      warns: ["the conf is invalid: no pod with a proxy will start"],
      requests: 1,
    },
  }),
  row("linkerd.inbound-ports-to-ignore", "two ports without a comma", {
    ...linkerd({ "inbound-ports-to-ignore": ["25 587"] }),
    gives: badConf('linkerd.inbound-ports-to-ignore: "25 587" is not a port (1 to 65535)'),
  }),
  row("linkerd.inbound-ports-to-ignore", "a word where a list is meant, by the annotations", {
    ...linkerd({ "inbound-ports-to-ignore": "4190", "incoming-proxy-port": "http" }),
    annotations: {},
    gives: {
      skipped: unmarked,
      warns: ["the conf is invalid: no pod with a proxy will start"],
      requests: 0,
    },
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
    ...linkerd({ ipv6: true, "subnets-to-ignore": ["fd00::/8", "10.0.0.0/8"] }),
    gives: { rules: { from: ["10.0.0.0/8"] }, ipv6: { from: ["fd00::/8"] } },
  }),
  row("linkerd.subnets-to-ignore", "all there are", {
    ...linkerd({ "subnets-to-ignore": ["0.0.0.0/0"] }),
    gives: {
      rules: { from: ["0.0.0.0/0"] },
      warns: ["all sources are excluded: what comes in passes the proxy by"],
    },
  }),
  row("linkerd.subnets-to-ignore", "bits behind the prefix, and addresses alone", {
    ...linkerd({ ipv6: true, "subnets-to-ignore": ["10.1.2.3/8", "192.0.2.1", "fd00::1"] }),
    gives: {
      rules: { from: ["10.0.0.0/8", "192.0.2.1/32"] },
      ipv6: { from: ["fd00::1/128"] },
      warns: [
        'linkerd.subnets-to-ignore: "10.1.2.3/8" is read as 10.0.0.0/8; "192.0.2.1" is read as 192.0.2.1/32; "fd00::1" is read as fd00::1/128',
      ],
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
  row("linkerd.close-wait-timeout", "an hour, whose rules are as any pod's", {
    ...linkerd({ "close-wait-timeout": "1h" }),
    gives: {},
  }),
  row("linkerd.close-wait-timeout", "a number, which has no unit", {
    ...linkerd({ "close-wait-timeout": 3600 }),
    gives: badConf("linkerd.close-wait-timeout: 3600 is not a duration (like 30s or 1h)"),
  }),
  row("other keys", "all of them null", {
    top: { log_level: null, log_file: null, kubernetes: null },
    ...linkerd({
      "proxy-gid": null,
      "ports-to-redirect": null,
      "outbound-ports-to-ignore": null,
      "subnets-to-ignore": null,
      simulate: null,
      "use-wait-flag": null,
      "iptables-mode": null,
      "close-wait-timeout": null,
    }),
    sluice: { "pod-source": null, "agent-pod": null, "deny-annotations": { emoji: null } },
    gives: { requests: 0 },
  }),
  row("kubernetes.kubeconfig", "a file that is not there", {
    top: { kubernetes: { kubeconfig: "/nonexistent/kubeconfig" } },
    gives: {
      error: [
        11,
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
