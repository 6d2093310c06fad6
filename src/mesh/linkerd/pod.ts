// The facts of a pod that decide whether it is redirected, and what is odd about it. Pure: from where the facts come
// (the runtime's annotations, or the API) is upkeep/pod/facts.ts' business.
import {
  controlPlaneLabel,
  createdByAnnotation,
  initContainer,
  injectAnnotation,
  ownInitContainers,
  proxyContainer,
  proxyVersionAnnotation,
} from "./names.ts";

export type Annotations = Readonly<Record<string, string>>;

/** A container, with the user that it runs as when it or its pod says so. */
export type Container = { readonly name: string; readonly runAsUser: number | undefined };

export type PodFacts = {
  readonly annotations: Annotations;
  /** The namespace's, for what the pod does not say; the injector copies them onto pods, so the runtime's facts have none. */
  readonly namespaceAnnotations: Annotations;
  readonly isControlPlane: boolean;
  /** Only the API tells; undefined when the facts are the runtime's. */
  readonly spec: PodSpec | undefined;
};

export type PodSpec = {
  readonly hostNetwork: boolean;
  readonly labels: Annotations;
  readonly containers: readonly Container[];
  readonly initContainers: readonly Container[];
};

/** Why a pod is not redirected; undefined when it is. With a spec by linkerd-cni's rule, else by the injector's mark. */
export function skipReason({
  annotations,
  spec,
}: Pick<PodFacts, "annotations" | "spec">): string | undefined {
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

/**
 * What annotations alone tell of a pod that may be Linkerd's control plane: "injected" where they say that it was given its
 * proxy like any other, "installed" where a chart or the command line made it, else "unknown".
 */
export function originOf(annotations: Annotations): "injected" | "installed" | "unknown" {
  const createdBy = annotations[createdByAnnotation] ?? "";
  const inject = annotations[injectAnnotation] ?? "";
  if (createdBy.startsWith("linkerd/proxy-injector")) return "injected";
  if (inject === "enabled" || inject === "ingress") return "injected";
  return /^linkerd\/(helm|cli)( |$)/.test(createdBy) ? "installed" : "unknown";
}

/** True for pods of Linkerd's own control plane. */
export function isControlPlane(spec: PodSpec): boolean {
  return (spec.labels[controlPlaneLabel] ?? "") !== "";
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
