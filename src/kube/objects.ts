// The few fields of API objects that are read, checked as they come in: another program's JSON is not trusted to be ours.
import * as z from "zod/mini";
import type { Annotations, KnownPod, PodSpec } from "../mesh/pod.ts";
import type { PortRange } from "../redirect/port.ts";

const strings = z.prefault(z.nullable(z.record(z.string(), z.string())), {});
const metadata = z.looseObject({
  uid: z.prefault(z.nullable(z.string()), ""),
  annotations: strings,
  labels: strings,
});
const securityContext = z.optional(
  z.nullable(z.looseObject({ runAsUser: z.optional(z.nullable(z.number())) })),
);
const containers = z.prefault(
  z.nullable(z.array(z.looseObject({ name: z.string(), securityContext }))),
  [],
);

const podSchema = z.looseObject({
  kind: z.literal("Pod"),
  metadata,
  spec: z.looseObject({
    hostNetwork: z.optional(z.boolean()),
    securityContext,
    containers,
    initContainers: containers,
  }),
});

const namespaceSchema = z.looseObject({ kind: z.literal("Namespace"), metadata });

const port = z.int().check(z.minimum(1), z.maximum(65535));

const serviceSchema = z.looseObject({
  kind: z.literal("Service"),
  spec: z.looseObject({
    ports: z.array(
      z.looseObject({
        port,
        targetPort: z.optional(z.union([port, z.string()])),
      }),
    ),
  }),
});

/** A pod as the API has it; what its namespace says is asked separately. */
export type ApiPod = KnownPod & {
  readonly uid: string;
  /** The image in the API of a pod that the kubelet has from a file: the runtime knows it by another UID. */
  readonly isMirror: boolean;
};

/** By which the kubelet marks its images in the API, and from where it has a pod (`file`, `http`; or `api`). */
const [mirrorAnnotation, sourceAnnotation] = [
  "kubernetes.io/config.mirror",
  "kubernetes.io/config.source",
];

/** Reads a pod. Throws for another document. */
export function readPod(document: unknown): ApiPod {
  const { metadata, spec } = z.parse(podSchema, document);
  const podUser = spec.securityContext?.runAsUser ?? undefined;
  const list = (found: typeof spec.containers) =>
    (found ?? []).map(({ name, securityContext: own }) => ({
      name,
      runAsUser: own?.runAsUser ?? podUser,
    }));
  const facts: PodSpec = {
    hostNetwork: spec.hostNetwork ?? false,
    labels: metadata.labels ?? {},
    containers: list(spec.containers),
    initContainers: list(spec.initContainers),
  };
  const annotations = metadata.annotations ?? {};
  return {
    uid: metadata.uid ?? "",
    isMirror:
      (annotations[mirrorAnnotation] ?? "") !== "" ||
      (annotations[sourceAnnotation] ?? "api") !== "api",
    annotations,
    spec: facts,
  };
}

/** A namespace's annotations. Throws for another document. */
export function readNamespace(document: unknown): Annotations {
  return z.parse(namespaceSchema, document).metadata.annotations ?? {};
}

/** A service's ports, and the target ports that are numbers. Throws for another document. */
export function readServicePorts(document: unknown): PortRange[] {
  return z.parse(serviceSchema, document).spec.ports.flatMap(({ port, targetPort }) => {
    const numbers = typeof targetPort === "number" ? [port, targetPort] : [port];
    return numbers.map((number) => ({ from: number, to: number }));
  });
}
