// What the tests of this level share: one cluster, brought up for the first of them and taken away after the last.
import { test as base } from "vitest";
import type { Chain, ChainOptions } from "../../runtime/cri/chain.ts";
import { need } from "../../runtime/cri/need.ts";
import { annotatedChain } from "../../runtime/cri/plugins.ts";
import { type Cluster, down, setChain, up } from "./cluster.ts";
import { deleteAll } from "./pods.ts";
import { clusterLack, release } from "./release.ts";

/**
 * A test that is given a cluster without pods, whose node has the chain of `ipv4Network`. Files use it as it is: an
 * extension of it would bring up a cluster of its own.
 */
export const test = base
  .extend("lack", { scope: "worker" }, () => clusterLack())
  .extend("shared", { scope: "worker" }, async ({ lack }, { onCleanup }) => {
    if (lack !== undefined) return undefined;
    const cluster = await up();
    onCleanup(() => down(cluster));
    return cluster;
  })
  .extend("cluster", async ({ lack, shared, skip }, { onCleanup }): Promise<Cluster> => {
    need(skip, lack);
    if (shared === undefined) throw new Error("no cluster");
    onCleanup(() => deleteAll(shared));
    await setChain(shared, chain(shared, { name: ipv4Network }));
    return shared;
  });

export const ipv4Network = "slc-ipv4";
export const dualNetwork = "slc-dual";

/** A chain of the cluster's spec version, in which pods are known by their annotations. */
export function chain({ box }: Cluster, options: Omit<ChainOptions, "cniVersion">): Chain {
  return annotatedChain(box, { ...options, cniVersion: release.cniVersion });
}
