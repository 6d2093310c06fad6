// What of a pod decides whether Linkerd redirects it, and what is odd about it.
import type { Annotations, Container, KnownPod, PodSpec } from "../pod.ts";
import {
  initContainer,
  ownInitContainers,
  proxyContainer,
  proxyVersionAnnotation,
} from "./names.ts";

/** Why a pod is not redirected; undefined when it is. With a spec by linkerd-cni's rule, else by the injector's mark. */
export function skipReason({ annotations, spec }: KnownPod): string | undefined {
  if (spec === undefined) {
    return isMarked(annotations)
      ? undefined
      : `no annotation ${proxyVersionAnnotation}: the pod has no proxy`;
  }
  if (spec.hostNetwork) return "the pod is on the node's network";
  if (spec.initContainers.some(({ name }) => name === initContainer)) {
    return `the pod has an init container ${initContainer}, which sets up the rules itself`;
  }
  return proxyOf(spec) === undefined ? `no container ${proxyContainer}` : undefined;
}

/** True for a pod that the injector gave a proxy: it carries all annotations that count, its namespace's among them. */
export function isMarked(annotations: Annotations): boolean {
  return (annotations[proxyVersionAnnotation] ?? "") !== "";
}

/** The proxy's container: an ordinary one, or a native sidecar among the init containers. */
export function proxyOf(spec: PodSpec): Container | undefined {
  return [...spec.containers, ...spec.initContainers].find(({ name }) => name === proxyContainer);
}

/** What will surprise the pod's owner under a redirect with this exempted uid: one sentence each. */
export function oddities(spec: PodSpec, proxyUid: number): string[] {
  const others = spec.containers.filter(({ name }) => name !== proxyContainer);
  const exempt = others.filter(({ runAsUser }) => runAsUser === proxyUid);
  const cutOff = beforeProxy(spec).filter(({ runAsUser }) => runAsUser !== proxyUid);
  const names = (containers: readonly Container[]) => containers.map(({ name }) => name).join(", ");
  return [
    ...(exempt.length === 0
      ? []
      : [`containers with the proxy's uid ${proxyUid} pass the proxy by: ${names(exempt)}`]),
    ...(cutOff.length === 0
      ? []
      : [
          `init containers run before the proxy and have no network but excluded ports (exclude their ports, or run them as uid ${proxyUid}): ${names(cutOff)}`,
        ]),
  ];
}

function beforeProxy({ initContainers }: PodSpec): Container[] {
  const at = initContainers.findIndex(({ name }) => name === proxyContainer);
  const before = at === -1 ? initContainers : initContainers.slice(0, at);
  return before.filter(({ name }) => !ownInitContainers.includes(name));
}
