// What tests of the commands say of pods: annotations as the runtime sends them, and an API that tells of the pod.
import { Fault } from "../../src/fault.ts";
import type { ApiPod } from "../../src/kube/objects.ts";
import type { KubeReader } from "../../src/kube/reader.ts";
import type { Annotations } from "../../src/mesh/pod.ts";
import type { World } from "./world.ts";

/** The mark that the injector leaves. */
export const mark = { "linkerd.io/proxy-version": "stable-2.14" };
/** Annotations of Linkerd's configuration, by their keys without prefix. */
export const says = (entries: Record<string, string>): Annotations =>
  Object.fromEntries(
    Object.entries(entries).map(([key, text]) => [`config.linkerd.io/${key}`, text]),
  );

/** A conf that goes by the annotations that the runtime sends. */
export const annotated = (annotations: Annotations | null, sluice: object = {}) => ({
  conf: {
    kubernetes: { kubeconfig: "/etc/kubeconfig" },
    runtimeConfig: { "io.kubernetes.cri.pod-annotations": annotations },
    sluice,
  },
});

/** A conf that asks the API. */
export const asking = (sluice: object = {}) => ({
  conf: { kubernetes: { kubeconfig: "/etc/kubeconfig" }, sluice },
});

/** A pod with a proxy. */
export const pod: ApiPod = {
  uid: "0123",
  isMirror: false,
  annotations: {},
  spec: {
    hostNetwork: false,
    labels: {},
    containers: [{ name: "linkerd-proxy", runAsUser: 2102 }],
    initContainers: [],
  },
};

/** The same without a proxy. */
export const bare: ApiPod = {
  ...pod,
  spec: { hostNetwork: false, labels: {}, containers: [], initContainers: [] },
};

/** An API that tells this, and notes what it was asked. */
export function api(world: World, told: ApiPod | Fault, namespace: Annotations = {}): string[] {
  const asked: string[] = [];
  const reader: KubeReader = {
    pod: (...names) => {
      asked.push(`pod ${names.join("/")}`);
      return told instanceof Fault ? Promise.reject(told) : Promise.resolve(told);
    },
    namespaceAnnotations: (name) => {
      asked.push(`namespace ${name}`);
      return Promise.resolve(namespace);
    },
    apiServerPorts: () => {
      asked.push("ports");
      return Promise.resolve([443, 6443].map((port) => ({ from: port, to: port })));
    },
  };
  world.kube.reader = reader;
  return asked;
}
