// Objects as a Kubernetes API server gives them: with all the fields around those that are read.

export type Annotations = Readonly<Record<string, string>>;

/** A container, with the user that it says it runs as. */
export type PodContainer = { readonly name: string; readonly runAsUser?: number };

/** What tests say of a pod; all else is as of any pod. */
export type PodWish = {
  readonly annotations?: Annotations;
  readonly labels?: Annotations;
  readonly containers?: readonly PodContainer[];
  readonly initContainers?: readonly PodContainer[];
  readonly hostNetwork?: boolean;
  /** The pod's own securityContext.runAsUser. */
  readonly runAsUser?: number;
};

/** The pod that tests are about. */
export const podName = { namespace: "emoji", name: "web" } as const;

/** Its UID, which a runtime tells as well. */
export const podUid = "6f1c1c5e-8a53-4b0e-9d6c-0a4d0a4f7a11";

export const paths = {
  pod: "/api/v1/namespaces/emoji/pods/web",
  namespace: "/api/v1/namespaces/emoji",
  service: "/api/v1/namespaces/default/services/kubernetes",
} as const;

/** A pod with a proxy beside its application. */
export const meshed: readonly PodContainer[] = [{ name: "app" }, { name: "linkerd-proxy" }];

/** The pod as the API has it. */
export function podObject(wish: PodWish = {}): object {
  const { annotations, labels, hostNetwork, runAsUser } = wish;
  const { containers = meshed, initContainers = [] } = wish;
  return {
    kind: "Pod",
    apiVersion: "v1",
    metadata: {
      ...podName,
      uid: podUid,
      resourceVersion: "4711",
      creationTimestamp: "2026-07-01T10:00:00Z",
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
      managedFields: [{ manager: "kubelet", operation: "Update", fieldsType: "FieldsV1" }],
    },
    spec: {
      containers: containers.map(containerObject),
      // The API leaves out what is empty.
      ...(initContainers.length === 0
        ? {}
        : { initContainers: initContainers.map(containerObject) }),
      restartPolicy: "Always",
      nodeName: "node-1",
      ...(hostNetwork === undefined ? {} : { hostNetwork }),
      securityContext: runAsUser === undefined ? {} : { runAsUser },
    },
    status: { phase: "Pending", qosClass: "BestEffort" },
  };
}

function containerObject({ name, runAsUser }: PodContainer): object {
  return {
    name,
    image: `registry.example/${name}:1`,
    resources: {},
    imagePullPolicy: "IfNotPresent",
    ...(runAsUser === undefined ? {} : { securityContext: { runAsUser } }),
  };
}

/** The pod's namespace. */
export function namespaceObject(annotations?: Annotations): object {
  const { namespace } = podName;
  return {
    kind: "Namespace",
    apiVersion: "v1",
    metadata: {
      name: namespace,
      uid: "0b6d4f4c-1c1b-4c27-8a62-3ac7cdb0a3ab",
      labels: { "kubernetes.io/metadata.name": namespace },
      ...(annotations === undefined ? {} : { annotations }),
    },
    spec: { finalizers: ["kubernetes"] },
    status: { phase: "Active" },
  };
}

/** The Service by which the API itself is reached. */
export function serviceObject(port = 443, targetPort: number | string = 6443): object {
  return {
    kind: "Service",
    apiVersion: "v1",
    metadata: { name: "kubernetes", namespace: "default" },
    spec: {
      ports: [{ name: "https", protocol: "TCP", port, targetPort }],
      clusterIP: "10.96.0.1",
      type: "ClusterIP",
    },
    status: { loadBalancer: {} },
  };
}

/** All that is asked for a pod. */
export function objectsFor(pod: PodWish = {}, namespaceAnnotations?: Annotations) {
  return {
    [paths.pod]: podObject(pod),
    [paths.namespace]: namespaceObject(namespaceAnnotations),
    [paths.service]: serviceObject(),
  };
}

const user = 'User "system:serviceaccount:sluice:sluice" cannot get resource "pods"';

/** Reason and message of each status; `%` stands for what was asked for. */
const failures: Readonly<Record<number, readonly [reason: string, message: string]>> = {
  401: ["Unauthorized", "Unauthorized"],
  403: ["Forbidden", `% is forbidden: ${user} in API group "" in the namespace "emoji"`],
  404: ["NotFound", "% not found"],
  429: ["TooManyRequests", "the server has received too many requests, please try again later"],
  500: ["InternalError", "etcdserver: request timed out"],
  503: ["ServiceUnavailable", "apiserver not ready"],
};

/** What the API says instead of an object. */
export function statusObject(code: number, path: string): object {
  const [reason, text] = failures[code] ?? ["", ""];
  const [kind = "", name] = path.split("/").slice(-2);
  const message = text.replace("%", `${kind} "${name}"`);
  const about = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure" };
  return { ...about, message, reason, code };
}
