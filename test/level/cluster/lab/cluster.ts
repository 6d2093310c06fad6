// A whole Kubernetes cluster of one node, made of plain processes in a box. Seconds to bring up; nothing is left of it.

import { type Box, makeBox } from "../../runtime/cri/box.ts";
import type { Chain } from "../../runtime/cri/chain.ts";
import { type Containerd, startContainerd } from "../../runtime/cri/containerd.ts";
import { type Crictl, crictlOf } from "../../runtime/cri/crictl.ts";
import { until } from "../../runtime/cri/until.ts";
import { type ApiServer, layOutApiServer, program, startControllers } from "./control-plane.ts";
import { writeImages } from "./images.ts";
import { setUpNetwork, startNodeAgents } from "./node.ts";
import { makePki, type Pki } from "./pki.ts";
import { release } from "./release.ts";

export type Cluster = {
  /** Where all of it runs: the node's files, network and processes. */
  readonly box: Box;
  readonly pki: Pki;
  readonly apiServer: ApiServer;
  readonly containerd: Containerd;
  readonly crictl: Crictl;
};

/** Brings a cluster up. Its node is not ready until it is given a chain. */
export async function up(): Promise<Cluster> {
  const box = await makeBox("kube");
  try {
    return await fill(box);
  } catch (error) {
    await box.remove();
    throw error;
  }
}

/** Takes the cluster away: its processes, its pods, its files. */
export async function down({ box }: Cluster): Promise<void> {
  await box.remove();
}

/** kubectl as the cluster's admin: its stdout; throws with its stderr when it fails. */
export async function kubectl(
  { box, pki }: Cluster,
  args: readonly string[],
  input = "",
): Promise<string> {
  const argv = [program("kubectl"), `--kubeconfig=${pki.file("admin.kubeconfig")}`, ...args];
  const { exitCode, stdout, stderr } = await box.run(argv, { input });
  if (exitCode !== 0) throw new Error(`kubectl ${args.join(" ")}: ${stderr}`);
  return stdout;
}

/** Gives the node a chain, and waits until containerd has loaded it. */
export async function setChain({ containerd, crictl }: Cluster, chain: Chain): Promise<void> {
  await containerd.setChain(chain, crictl);
}

async function fill(box: Box): Promise<Cluster> {
  if (release.containerd === undefined) throw new Error("no containerd");
  await setUpNetwork(box);
  const pki = await makePki(`${box.dir}/pki`);
  pki.kubeconfig("admin");
  const apiServer = layOutApiServer(box, pki);
  const [containerd] = await Promise.all([
    startContainerdWithImages(box, release.containerd),
    apiServer.start(),
  ]);
  startControllers(box, pki);
  await startNodeAgents(box, pki, containerd.socket);
  const cluster = { box, pki, apiServer, containerd, crictl: crictlOf(box, containerd.socket) };
  await until(
    () => kubectl(cluster, ["get", "serviceaccount", "default"]).catch(() => undefined),
    () => "the service account that pods need",
  );
  return cluster;
}

async function startContainerdWithImages(
  box: Box,
  containerd: NonNullable<typeof release.containerd>,
): Promise<Containerd> {
  const started = await startContainerd(box, containerd);
  for (const file of writeImages(box)) await started.importImage(file);
  return started;
}
