// Which programs the cluster is made of: those of new nodes, or, asked for by SLUICE_CLUSTER=old, those of old ones.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { kubernetesDir, oldKubernetesDir, versions } from "../../../../build/setup/paths.mjs";
import { searchPath } from "../../../lab/host.ts";
import { boxLack } from "../../runtime/cri/box.ts";
import { newContainerd, oldContainerd, type Release } from "../../runtime/cri/containerd.ts";
import { crictlLack } from "../../runtime/cri/crictl.ts";
import { pluginsLack } from "../../runtime/cri/plugins.ts";

export type ClusterRelease = {
  readonly title: string;
  /** The directory of Kubernetes' programs. */
  readonly kubernetes: string;
  readonly containerd: Release | undefined;
  /** The newest spec version whose lists this containerd starts pods with. */
  readonly cniVersion: string;
  /** Whether containerd asks plugins for STATUS. */
  readonly asksStatus: boolean;
};

/** The release that this run is about. */
export const release: ClusterRelease =
  process.env["SLUICE_CLUSTER"] === "old"
    ? {
        title: `Kubernetes ${versions.oldKubernetes} with containerd 1.6`,
        kubernetes: oldKubernetesDir,
        containerd: oldContainerd(),
        cniVersion: "1.0.0",
        asksStatus: false,
      }
    : {
        title: `Kubernetes ${versions.kubernetes} with containerd ${versions.containerd}`,
        kubernetes: kubernetesDir,
        containerd: newContainerd(),
        cniVersion: "1.1.0",
        asksStatus: true,
      };

/** Why there can be no such cluster on this machine; undefined when there can. */
export function clusterLack(): string | undefined {
  const needed = ["etcd", "openssl", "runc", "haproxy", "iptables"];
  const missing = needed.filter((program) => !isOnPath(program));
  const lack = boxLack() ?? pluginsLack() ?? crictlLack();
  if (lack !== undefined) return lack;
  if (missing.length > 0) return `not installed: ${missing.join(", ")}`;
  if (!existsSync(join(release.kubernetes, "kubelet"))) return `not built: ${release.title}`;
  return release.containerd === undefined ? `no containerd for ${release.title}` : undefined;
}

function isOnPath(program: string): boolean {
  return searchPath.split(":").some((dir) => existsSync(join(dir, program)));
}
