// etcd, the API server, the controllers and the scheduler: plain processes on the node's network.
import { join } from "node:path";
import type { Box, Service } from "../../runtime/cri/box.ts";
import { until } from "../../runtime/cri/until.ts";
import { nodeIp, type Pki, serviceRange } from "./pki.ts";
import { release } from "./release.ts";

export type ApiServer = {
  /** Ends it; what its clients see is a refused connection. */
  readonly stop: () => Promise<void>;
  /** Starts it, and waits until it is ready. It goes on with the objects that there were. */
  readonly start: () => Promise<void>;
};

const etcdUrl = "http://127.0.0.1:12379";

/** Starts etcd, and gives the API server, not started. */
export function layOutApiServer(box: Box, pki: Pki): ApiServer {
  box.start("etcd", [
    "etcd",
    `--data-dir=${join(box.dir, "etcd")}`,
    `--listen-client-urls=${etcdUrl}`,
    `--advertise-client-urls=${etcdUrl}`,
    "--listen-peer-urls=http://127.0.0.1:12380",
    "--unsafe-no-fsync",
  ]);
  let service: Service | undefined;
  return {
    stop: async () => await service?.stop("SIGKILL"),
    start: async () => {
      service = box.start("kube-apiserver", [program("kube-apiserver"), ...apiServerFlags(pki)]);
      await ready(box, service, pki);
    },
  };
}

/** Starts what makes pods of Deployments and puts them on nodes. */
export function startControllers(box: Box, pki: Pki): void {
  const alone = "--leader-elect=false";
  box.start("kube-controller-manager", [
    program("kube-controller-manager"),
    `--kubeconfig=${pki.kubeconfig("system:kube-controller-manager")}`,
    `--service-account-private-key-file=${pki.file("sa.key")}`,
    `--root-ca-file=${pki.file("ca.crt")}`,
    "--use-service-account-credentials",
    alone,
  ]);
  const kubeconfig = pki.kubeconfig("system:kube-scheduler");
  box.start("kube-scheduler", [program("kube-scheduler"), `--kubeconfig=${kubeconfig}`, alone]);
}

/** One of Kubernetes' programs. */
export function program(name: string): string {
  return join(release.kubernetes, name);
}

async function ready(box: Box, service: Service, pki: Pki): Promise<void> {
  const ask = ["curl", "--silent", "--fail", "--cacert", pki.file("ca.crt"), "--header"];
  const url = "https://127.0.0.1:6443/readyz";
  await until(
    async () => {
      if (service.ended() !== undefined) throw new Error(`the API server: ${service.tail()}`);
      const { exitCode } = await box.run([...ask, "Authorization: Bearer admin", url]);
      return exitCode === 0 ? true : undefined;
    },
    () => `the API server; it says\n${service.tail()}`,
  );
}

function apiServerFlags({ file }: Pki): string[] {
  return [
    `--etcd-servers=${etcdUrl}`,
    "--secure-port=6443",
    "--bind-address=0.0.0.0",
    `--advertise-address=${nodeIp}`,
    `--tls-cert-file=${file("api.crt")}`,
    `--tls-private-key-file=${file("api.key")}`,
    `--client-ca-file=${file("ca.crt")}`,
    `--token-auth-file=${file("tokens.csv")}`,
    "--authorization-mode=Node,RBAC",
    `--service-cluster-ip-range=${serviceRange}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    `--service-account-key-file=${file("sa.pub")}`,
    `--service-account-signing-key-file=${file("sa.key")}`,
    "--kubelet-preferred-address-types=InternalIP",
    `--kubelet-client-certificate=${file("kubelet-client.crt")}`,
    `--kubelet-client-key=${file("kubelet-client.key")}`,
    "--allow-privileged=true",
  ];
}
