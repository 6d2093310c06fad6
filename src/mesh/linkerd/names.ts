// Linkerd's names: chains, containers, annotations and labels that its own tools, and what they left behind, go by.

/** Takes what comes in from PREROUTING. linkerd-init and linkerd-cni use this name; it never changes. */
export const inboundChain = "PROXY_INIT_REDIRECT";

/** Takes what goes out from OUTPUT. */
export const outboundChain = "PROXY_INIT_OUTPUT";

/** All own chains, in the order in which they are written. */
export const ownChains: readonly string[] = [inboundChain, outboundChain];

/** The jumps into them as linkerd-init and linkerd-cni spell them. */
export const linkerdJumps: readonly string[] = [
  `-A PREROUTING -m comment --comment "proxy-init/install-proxy-init-prerouting" -j ${inboundChain}`,
  `-A OUTPUT -m comment --comment "proxy-init/install-proxy-init-output" -j ${outboundChain}`,
];

/** The proxy, as container or (native sidecar) as init container. */
export const proxyContainer = "linkerd-proxy";

/** Where it is, the pod sets up its rules itself. */
export const initContainer = "linkerd-init";

/** Init containers of Linkerd's own, which need no network of the pod's. */
export const ownInitContainers: readonly string[] = [initContainer, "linkerd-network-validator"];

/** The injector leaves this on each pod that it gave a proxy. */
export const proxyVersionAnnotation = "linkerd.io/proxy-version";

/** Says what made the pod: `linkerd/helm 2.19`, `linkerd/cli ...`, or `linkerd/proxy-injector ...` for ordinary pods. */
export const createdByAnnotation = "linkerd.io/created-by";

/** What the injector is asked by: "enabled" or "ingress" on pods that are injected. */
export const injectAnnotation = "linkerd.io/inject";

/** On pods of Linkerd's own control plane. */
export const controlPlaneLabel = "linkerd.io/control-plane-component";

/** What annotations that change the redirect begin with. */
export const configPrefix = "config.linkerd.io/";

/** The annotations that change the redirect, without their prefix. */
export const configKeys = [
  "skip-inbound-ports",
  "skip-outbound-ports",
  "skip-subnets",
  "proxy-uid",
  "proxy-gid",
  "inbound-port",
  "outbound-port",
  "admin-port",
  "control-port",
  "close-wait-timeout",
] as const;

export type ConfigKey = (typeof configKeys)[number];

/** Those that linkerd-cni takes from a namespace, for pods that are older than the injector's copying. */
export const namespaceKeys: readonly ConfigKey[] = [
  "skip-inbound-ports",
  "skip-outbound-ports",
  "skip-subnets",
  "proxy-uid",
  "proxy-gid",
];

/** How long conntrack remembers a connection that one side has closed (linkerd-init sets the same). */
export const closeWaitSetting = "net.netfilter.nf_conntrack_tcp_timeout_close_wait";
