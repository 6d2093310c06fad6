// How messages name the options that they tell people to look at.

/** The two stand in the mesh's section although they are no mesh's: linkerd-cni has them there, and its users keep them. */
export const optionNames = {
  backend: "linkerd.iptables-mode",
  ipv6: "linkerd.ipv6",
} as const;
