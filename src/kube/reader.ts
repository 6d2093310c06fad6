// The objects that ADD reads from the API: the pod, its namespace, and, for the control plane, where the API itself is.
import { Fault } from "../fault.ts";
import type { Annotations } from "../mesh/pod.ts";
import type { PortRange } from "../redirect/port.ts";
import { type KubeGet, type KubeSettings, openKube } from "./client.ts";
import { type ApiPod, readNamespace, readPod, readServicePorts } from "./objects.ts";

/** One GET each. All reject with Fault try-again or pod-unreadable, whose text says what to do. */
export type KubeReader = {
  readonly pod: (namespace: string, name: string) => Promise<ApiPod>;
  readonly namespaceAnnotations: (namespace: string) => Promise<Annotations>;
  /** Ports and target ports of Service default/kubernetes. */
  readonly apiServerPorts: () => Promise<PortRange[]>;
};

/** A reader of the API that a kubeconfig describes. @throws Fault try-again or pod-unreadable where that cannot be used. */
export async function openReader(settings: KubeSettings): Promise<KubeReader> {
  const get = await openKube(settings);
  return {
    pod: (namespace, name) =>
      read(get, `${pathOf(namespace)}/pods/${encodeURIComponent(name)}`, readPod),
    namespaceAnnotations: (namespace) => read(get, pathOf(namespace), readNamespace),
    apiServerPorts: () => read(get, `${pathOf("default")}/services/kubernetes`, readServicePorts),
  };
}

function pathOf(namespace: string): string {
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}`;
}

async function read<T>(get: KubeGet, path: string, parse: (document: unknown) => T): Promise<T> {
  const document = await get(path);
  try {
    return parse(document);
  } catch (cause) {
    throw new Fault("pod-unreadable", `the answer to GET ${path} is not the object asked for`, {
      details: "see that the kubeconfig's server is a Kubernetes API server",
      cause,
    });
  }
}
