// A service account of the cluster, as a kubeconfig: how a plugin or an agent asks the API.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Cluster, kubectl } from "./cluster.ts";
import { kubeconfigFor } from "./pki.ts";
import { apply } from "./pods.ts";

/** What it may do, as a ClusterRole says it. */
export type Rule = {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
};

/** Makes the account in the namespace `default` and gives the path of a kubeconfig with a fresh token of its. */
export async function makeServiceAccount(
  cluster: Cluster,
  name: string,
  rules: readonly Rule[],
): Promise<string> {
  const rbac = "rbac.authorization.k8s.io";
  const metadata = { name, namespace: "default" };
  await apply(cluster, [
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    { apiVersion: `${rbac}/v1`, kind: "ClusterRole", metadata: { name }, rules },
    {
      apiVersion: `${rbac}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name },
      roleRef: { apiGroup: rbac, kind: "ClusterRole", name },
      subjects: [{ kind: "ServiceAccount", ...metadata }],
    },
  ]);
  const token = await kubectl(cluster, ["create", "token", name]);
  const file = join(cluster.box.dir, `${name}.kubeconfig`);
  const kubeconfig = kubeconfigFor(token, cluster.pki.file("ca.crt"));
  writeFileSync(file, JSON.stringify(kubeconfig), { mode: 0o600 });
  return file;
}
