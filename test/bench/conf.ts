// What the plugins are given in the benchmark, and the same as rules for the ways that know no conf: pure.
import type { Backend, Family } from "../../src/netfilter/table.ts";

/** Where the plugin gets to know the pod from. */
export type Source = "annotations" | "api";

export type Setting = {
  readonly families: readonly Family[];
  readonly backend: Backend;
  readonly source: Source;
  readonly stateDir: string;
  readonly kubeconfig: string;
};

/** The pod's own words. */
export const podAnnotations: Readonly<Record<string, string>> = {
  "linkerd.io/proxy-version": "edge-26.7.1",
  "config.linkerd.io/skip-inbound-ports": "25,80-90",
};

const addresses: Readonly<Record<Family, string>> = {
  ipv4: "10.9.0.2/24",
  ipv6: "fd00:9::2/64",
};

/** A plugin conf as libcni sends it. */
export function confText(setting: Setting): string {
  const { families, backend, source, stateDir, kubeconfig } = setting;
  return JSON.stringify({
    cniVersion: "1.1.0",
    name: "bench",
    type: "sluice",
    log_level: "info",
    kubernetes: source === "api" ? { kubeconfig } : {},
    ...(source === "api"
      ? {}
      : { runtimeConfig: { "io.kubernetes.cri.pod-annotations": podAnnotations } }),
    linkerd: {
      "incoming-proxy-port": 4143,
      "outgoing-proxy-port": 4140,
      "proxy-uid": 2102,
      "inbound-ports-to-ignore": ["4190", "4191"],
      "outbound-ports-to-ignore": ["4567-4568"],
      "iptables-mode": backend,
      ipv6: families.includes("ipv6"),
    },
    sluice: { "state-dir": stateDir },
    prevResult: {
      cniVersion: "1.1.0",
      ips: families.map((family) => ({ address: addresses[family] })),
    },
  });
}

/** PATH as containerd's service has it. */
export const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** The environment of a call. */
export function cniEnv(command: string, netns: string, containerId: string) {
  return {
    PATH: searchPath,
    CNI_COMMAND: command,
    CNI_CONTAINERID: containerId,
    CNI_NETNS: netns,
    CNI_IFNAME: "eth0",
    CNI_PATH: "/opt/cni/bin",
    CNI_ARGS: "IgnoreUnknown=1;K8S_POD_NAMESPACE=emoji;K8S_POD_NAME=web",
  };
}

/** The rules of that conf and that pod, as linkerd-init spells them: one command a line, without program and table. */
export const rules: readonly string[] = [
  "-N PROXY_INIT_REDIRECT",
  "-A PROXY_INIT_REDIRECT -p tcp --match multiport --dports 4190,4191,25,80:90 -j RETURN -m comment --comment proxy-init/ignore-port-4190,4191,25,80-90",
  "-A PROXY_INIT_REDIRECT -p tcp -j REDIRECT --to-port 4143 -m comment --comment proxy-init/redirect-all-incoming-to-proxy-port",
  "-A PREROUTING -j PROXY_INIT_REDIRECT -m comment --comment proxy-init/install-proxy-init-prerouting",
  "-N PROXY_INIT_OUTPUT",
  "-A PROXY_INIT_OUTPUT -m owner --uid-owner 2102 -j RETURN -m comment --comment proxy-init/ignore-proxy-user-id",
  "-A PROXY_INIT_OUTPUT -o lo -j RETURN -m comment --comment proxy-init/ignore-loopback",
  "-A PROXY_INIT_OUTPUT -p tcp --match multiport --dports 4567:4568 -j RETURN -m comment --comment proxy-init/ignore-port-4567-4568",
  "-A PROXY_INIT_OUTPUT -p tcp -j REDIRECT --to-port 4140 -m comment --comment proxy-init/redirect-all-outgoing-to-proxy-port",
  "-A OUTPUT -j PROXY_INIT_OUTPUT -m comment --comment proxy-init/install-proxy-init-output",
];
