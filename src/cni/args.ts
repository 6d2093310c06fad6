// CNI_ARGS: "K=V;K2=V2", where Kubernetes' runtimes name the pod.

/** The pod that an attachment belongs to; empty strings where the runtime names none (podman, ctr, cnitool). */
export type PodName = { readonly namespace: string; readonly name: string };

/**
 * Reads CNI_ARGS. Lenient on purpose: pairs split at their first "=", what is no pair or unknown is passed over
 * whatever IgnoreUnknown says, since runtimes add keys of their own (IP, MAC) and nothing here depends on them.
 */
export function parseArgs(args: string): ReadonlyMap<string, string> {
  const pairs = args.split(";").flatMap((pair): [string, string][] => {
    const at = pair.indexOf("=");
    return at < 1 ? [] : [[pair.slice(0, at), pair.slice(at + 1)]];
  });
  return new Map(pairs);
}

/** True where the runtime named the pod, not only half of it. */
export function isNamed({ namespace, name }: PodName): boolean {
  return namespace !== "" && name !== "";
}

/** The pod named in CNI_ARGS by containerd, CRI-O or podman. */
export function podName(args: ReadonlyMap<string, string>): PodName {
  return {
    namespace: args.get("K8S_POD_NAMESPACE") ?? "",
    name: args.get("K8S_POD_NAME") ?? "",
  };
}

/** The UID of the pod that the sandbox is for; "" where the runtime tells none (containerd before 1.6). */
export function podUid(args: ReadonlyMap<string, string>): string {
  return args.get("K8S_POD_UID") ?? "";
}
