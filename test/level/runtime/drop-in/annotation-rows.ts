// Parity: the annotations of pods and namespaces.

import { expect } from "vitest";
import type { Annotations } from "../../../lab/api-objects.ts";
import { injected } from "./level.ts";
import { config, type Gives, linkerd, type Row, row } from "./row.ts";

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
export const annotationRows: readonly Row[] = [
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
  row(skipInbound, "entries that cannot be read, which are dropped", {
    ...say({ "skip-inbound-ports": "80,abc,+443,,90-80" }),
    sluice: { "on-invalid-annotation": "drop-entries" },
    gives: {
      rules: { in: ["80,443,4190,4191"] },
      warns: [
        "config.linkerd.io/skip-inbound-ports: plus signs are passed over",
        'config.linkerd.io/skip-inbound-ports: passed over: "abc" is not a port (1 to 65535); "" is not a port or a range of ports; "90-80" is not a range of ports (1-65535, lower end first)',
      ],
    },
  }),
  row(skipInbound, "longer than all annotations of a pod can be", {
    annotations: injected(config({ "skip-inbound-ports": "80,".repeat(90_000) })),
    gives: {
      ...badAnnotation("skip-inbound-ports", "is longer than 262144 characters"),
      requests: 0,
    },
  }),
  ...["1", "80,"].map((text) =>
    row(skipInbound, `120,000 blanks after ${text}`, {
      annotations: injected(config({ "skip-inbound-ports": `${text}${" ".repeat(120_000)}x` })),
      gives: {
        error: [103, expect.stringContaining("is not a port"), "correct or remove them"],
        requests: 0,
      },
    }),
  ),
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
  row(skipOutbound, "an empty one of a pod that the injector marked is a list of nothing", {
    ...withOutbound,
    pod: { annotations: injected(config({ "skip-outbound-ports": "" })) },
    namespace: config({ "skip-outbound-ports": "25", "inbound-port": "5143" }),
    gives: { warns: [replaced], requests: 1 },
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
    ...say({ "skip-subnets": "fd00::1/8, 10.1.2.3/8,172.17.0.1" }),
    gives: {
      rules: { from: ["10.0.0.0/8", "172.17.0.1/32"] },
      ipv6: { from: ["fd00::/8"] },
      warns: [
        'config.linkerd.io/skip-subnets: "fd00::1/8" is read as fd00::/8; "10.1.2.3/8" is read as 10.0.0.0/8; "172.17.0.1" is read as 172.17.0.1/32',
      ],
    },
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
  ...["-1", "0", "00"].map((gid) =>
    row("config.linkerd.io/proxy-gid", `${gid}: none, though the conf has one`, {
      ...linkerd({ "proxy-gid": 2102 }),
      ...say({ "proxy-gid": gid }),
      gives: {},
    }),
  ),
  row(
    "config.linkerd.io/inbound-port",
    "05143, and the namespace's, which the injector overruled",
    {
      pod: { annotations: injected(config({ "inbound-port": "05143" })) },
      namespace: config({ "outbound-port": "6140", "skip-inbound-ports": "25" }),
      gives: { rules: { inPort: 5143 }, requests: 1 },
    },
  ),
  row("config.linkerd.io/inbound-port", "the namespace's, of a pod without the injector's mark", {
    namespace: config({ "inbound-port": "5143", "admin-port": "5191" }),
    gives: {},
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
  ...["0", "0s", "500ms"].map((text) =>
    row("config.linkerd.io/close-wait-timeout", `${text}: not set`, {
      ...say({ "close-wait-timeout": text }),
      gives: {},
    }),
  ),
  row("config.linkerd.io/close-wait-timeout", "no duration", {
    ...say({ "close-wait-timeout": "soon" }),
    gives: badAnnotation(
      "close-wait-timeout",
      '"soon" is not a duration of a second or more (like 30s or 1h)',
    ),
  }),
];
