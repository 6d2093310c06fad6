// Manifests of what the tests apply.
import { linkerd, meshed } from "../../runtime/cri/chain.ts";
import { appImage, proxyImage } from "./images.ts";

export type PodOptions = {
  /** `default` unless said. */
  readonly namespace?: string;
  /** Labels beside its own name. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** HAProxy as the sidecar, and the mark of a meshed pod. */
  readonly sidecar?: boolean;
  /** A web server at `webPort`; the kubelet asks it before it calls the pod ready. */
  readonly serves?: boolean;
  /** Keys over those of the pod's spec. */
  readonly spec?: object;
};

/** Where the app's web server listens. */
export const webPort = 8080;

/** A pod with the container `app`, labelled with its own name. */
export function podManifest(name: string, options: PodOptions = {}): object {
  const { namespace = "default", labels = {}, annotations = {}, spec = {} } = options;
  const { sidecar = false, serves = false } = options;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace,
      labels: { app: name, ...labels },
      annotations: { ...(sidecar ? meshed : {}), ...annotations },
    },
    spec: {
      terminationGracePeriodSeconds: 1,
      // There is no DNS in the cluster.
      dnsPolicy: "Default",
      containers: [...(sidecar ? [proxyContainer] : []), serves ? webContainer : appContainer],
      ...spec,
    },
  };
}

/** A Service with an address of its own, for the pod of this name. */
export function serviceManifest(name: string, port: number): object {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, labels: { app: name } },
    spec: { selector: { app: name }, ports: [{ port, targetPort: webPort }] },
  };
}

const appContainer = { name: "app", image: appImage, imagePullPolicy: "Never" };

const webContainer = {
  ...appContainer,
  command: ["/bin/httpd", "-f", "-p", String(webPort), "-h", "/www"],
  readinessProbe: { httpGet: { path: "/", port: webPort }, periodSeconds: 1 },
};

const proxyContainer = {
  name: "linkerd-proxy",
  image: proxyImage,
  imagePullPolicy: "Never",
  securityContext: { runAsUser: linkerd["proxy-uid"], runAsNonRoot: true },
};
