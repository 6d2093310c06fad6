// A pod as every mesh may look at it: what it says in annotations, and what the API tells of it. Pure: from where the facts
// come (the runtime's annotations, or the API) is upkeep/pod/facts.ts' business.

export type Annotations = Readonly<Record<string, string>>;

/** A container, with the user that it runs as when it or its pod says so. */
export type Container = { readonly name: string; readonly runAsUser: number | undefined };

/** What only the API tells of a pod. */
export type PodSpec = {
  readonly hostNetwork: boolean;
  readonly labels: Annotations;
  readonly containers: readonly Container[];
  readonly initContainers: readonly Container[];
};

/** A pod itself, without its namespace. */
export type KnownPod = {
  readonly annotations: Annotations;
  /** Undefined when the facts are the runtime's. */
  readonly spec: PodSpec | undefined;
};

export type PodFacts = KnownPod & {
  /** The namespace's, for what the pod does not say; injectors copy them onto pods, so the runtime's facts have none. */
  readonly namespaceAnnotations: Annotations;
};
