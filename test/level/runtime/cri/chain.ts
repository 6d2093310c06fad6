// The conf lists that the runtimes are given: the reference bridge, and sluice behind it.

import { readFileSync } from "node:fs";
import { join } from "node:path";

export type ChainOptions = {
  readonly name: string;
  readonly cniVersion: string;
  readonly dualStack?: boolean;
  /** Keys of sluice's entry, beside and over those that every chain has. */
  readonly sluice?: Readonly<Record<string, unknown>>;
  /** Plugins behind sluice. */
  readonly behind?: readonly object[];
};

export type Chain = {
  readonly cniVersion: string;
  readonly name: string;
  readonly plugins: readonly (Readonly<Record<string, unknown>> & { readonly type: string })[];
};

/** The node's address in the pods' network, where pods reach it. */
export const gateway = "10.214.0.1";
const subnets = ["10.214.0.0/16", "fd00:214::/64"];

/** The part of sluice's entry that says what is redirected; two ports of the proxy's own are not. */
export const linkerd = {
  "incoming-proxy-port": 4143,
  "outgoing-proxy-port": 4140,
  "proxy-uid": 2102,
  "inbound-ports-to-ignore": ["4190", "4191"],
} as const;

/** What an entry has on top where the runtime hands over the pods' annotations. */
export const byAnnotations = {
  capabilities: { "io.kubernetes.cri.pod-annotations": true },
  kubernetes: {},
} as const;

/** Marks a pod as meshed. */
export const meshed = { "linkerd.io/proxy-version": "edge-26.11.1" } as const;

/** The conf list. */
export function chainOf(options: ChainOptions): Chain {
  const { name, cniVersion, dualStack = false, sluice = {}, behind = [] } = options;
  const used = dualStack ? subnets : subnets.slice(0, 1);
  const bridge = {
    type: "bridge",
    bridge: "slc-br0",
    isGateway: true,
    ipMasq: true,
    hairpinMode: true,
    ipam: {
      type: "host-local",
      ranges: used.map((subnet) => [{ subnet }]),
      routes: used.map((subnet) => ({ dst: subnet.includes(":") ? "::/0" : "0.0.0.0/0" })),
    },
  };
  const own = { type: "sluice", linkerd: { ...linkerd, ipv6: dualStack }, ...sluice };
  return { cniVersion, name, plugins: [bridge, own, ...behind.map(typed)] };
}

function typed(plugin: object): Chain["plugins"][number] {
  return { type: "", ...plugin };
}

const golden = join(import.meta.dirname, "../../../golden/chart-default.ipv4.rules");

/** The rules of a pod that is redirected by `linkerd` above, as iptables-save prints them; those of IPv6 are the same. */
export const redirected: readonly string[] = readFileSync(golden, "utf8").trimEnd().split("\n");
