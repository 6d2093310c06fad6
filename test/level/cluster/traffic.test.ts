// Requests in the cluster, with HAProxy in the place of the mesh's proxy: what the rules are for.
import { existsSync } from "node:fs";
import { expect } from "vitest";
import { gateway } from "../runtime/cri/chain.ts";
import { need } from "../runtime/cri/need.ts";
import { until } from "../runtime/cri/until.ts";
import { type Cluster, kubectl } from "./lab/cluster.ts";
import { page } from "./lab/images.ts";
import { test } from "./lab/level.ts";
import { serviceManifest, webPort } from "./lab/manifest.ts";
import { apply, applyPod, execIn } from "./lab/pods.ts";

test("a request goes through both sidecars when one pod asks another", async ({ cluster }) => {
  const server = await applyPod(cluster, "server", { sidecar: true, serves: true });
  const client = await applyPod(cluster, "client", { sidecar: true });
  const target = `${server.ips[0]}:${webPort}`;

  expect(await get(cluster, target)).toBe(page);

  const out = await hop(cluster, "client", (line) => line.to === target);
  const into = await hop(cluster, "server", (line) => line.from === out.onward);
  expect(out).toMatchObject({
    side: "outbound",
    from: expect.stringMatching(`^${client.ips[0]}:`),
  });
  expect(into).toMatchObject({ side: "inbound", to: target });
});

test("a request goes through both sidecars when a pod asks a Service", async ({
  cluster,
  skip,
}) => {
  const hasBridgeNetfilter = existsSync("/proc/sys/net/bridge");
  need(skip, hasBridgeNetfilter ? undefined : "kube-proxy needs the kernel's br_netfilter");
  const server = await applyPod(cluster, "server", { sidecar: true, serves: true });
  await applyPod(cluster, "client", { sidecar: true });
  await apply(cluster, [serviceManifest("server", 80)]);
  const ip = await kubectl(cluster, ["get", "service", "server", "-o=jsonpath={.spec.clusterIP}"]);
  // kube-proxy hears of the Service a moment later.
  const answer = await until(
    () => get(cluster, `${ip}:80`).catch(() => undefined),
    () => `an answer from ${ip}`,
  );

  expect(answer).toBe(page);
  const into = await hop(cluster, "server", ({ from }) => !from.startsWith(`${gateway}:`));
  const out = await hop(cluster, "client", ({ onward }) => onward === into.from);
  expect(out).toMatchObject({ side: "outbound", to: `${ip}:80` });
  expect(into).toMatchObject({ side: "inbound", to: `${server.ips[0]}:${webPort}` });
});

test("the kubelet's probe goes through the sidecar when it asks a meshed pod", async ({
  cluster,
}) => {
  const { ips } = await applyPod(cluster, "server", { sidecar: true, serves: true });

  const probe = await hop(cluster, "server", () => true);
  expect(probe).toMatchObject({
    side: "inbound",
    from: expect.stringMatching(`^${gateway}:`),
    to: `${ips[0]}:${webPort}`,
  });
});

/** The app's answer to a request from inside a pod. */
async function get(cluster: Cluster, target: string): Promise<string> {
  return await execIn(cluster, "client", ["wget", "-q", "-O", "-", `http://${target}/`]);
}

/** One line of a sidecar's log. Addresses are `ip:port`. */
type Hop = {
  readonly side: string;
  readonly from: string;
  /** Where the connection was going before it was redirected. */
  readonly to: string;
  /** The proxy's own end of the connection onwards. */
  readonly onward: string;
};

async function hop(cluster: Cluster, pod: string, isIt: (hop: Hop) => boolean): Promise<Hop> {
  return await until(
    async () => (await hopsOf(cluster, pod)).find(isIt),
    () => `a connection in the log of ${pod}'s sidecar`,
  );
}

async function hopsOf(cluster: Cluster, pod: string): Promise<Hop[]> {
  const log = await kubectl(cluster, ["logs", pod, "--container", "linkerd-proxy"]);
  return log.split("\n").map((line) => {
    const [side = "", from = "", to = "", onward = ""] = line.split(" ");
    return { side, from, to, onward };
  });
}
