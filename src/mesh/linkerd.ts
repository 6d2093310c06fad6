// Linkerd's names: chains and annotations that its own tools, and what they left behind, go by.

/** Takes what comes in from PREROUTING. linkerd-init and linkerd-cni use this name; it never changes. */
export const inboundChain = "PROXY_INIT_REDIRECT";

/** Takes what goes out from OUTPUT. */
export const outboundChain = "PROXY_INIT_OUTPUT";

/** All own chains, in the order in which they are written. */
export const ownChains: readonly string[] = [inboundChain, outboundChain];
