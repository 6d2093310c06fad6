// The built plugin on a Kubernetes node: pods that kubectl applies, started by kubelet and containerd through bridge and us.
import { expect } from "vitest";
import { meshed, redirected } from "../runtime/cri/chain.ts";
import { kept, logged, nothingKept, recordOf, rulesIn } from "../runtime/cri/traces.ts";
import { until } from "../runtime/cri/until.ts";
import { kubectl, setChain } from "./lab/cluster.ts";
import { chain, dualNetwork, ipv4Network, test } from "./lab/level.ts";
import { podManifest } from "./lab/manifest.ts";
import { apply, applyPod, deleteAll, eventsOf, runningPods, waitForPods } from "./lab/pods.ts";
import { release } from "./lab/release.ts";

test("ADD redirects a pod when its annotations say that it is meshed", async ({ cluster }) => {
  const pod = await applyPod(cluster, "meshed", { annotations: meshed });

  expect(pod.ips).toEqual([expect.stringMatching(/^10\.214\.0\.\d+$/)]);
  expect(rulesIn(cluster.box, pod.netns)).toEqual(redirected);
  expect(rulesIn(cluster.box, pod.netns, "ipv6")).toEqual([]);
});

test("ADD redirects both families of a pod when it has addresses of both", async ({ cluster }) => {
  await setChain(cluster, chain(cluster, { name: dualNetwork, dualStack: true }));
  const pod = await applyPod(cluster, "dual", { annotations: meshed });

  expect(pod.ips).toEqual([
    expect.stringMatching(/^10\.214\.0\.\d+$/),
    expect.stringMatching(/^fd00:214::/),
  ]);
  expect(rulesIn(cluster.box, pod.netns)).toEqual(redirected);
  expect(rulesIn(cluster.box, pod.netns, "ipv6")).toEqual(redirected);
  await deleteAll(cluster);
  expect(kept(cluster.box, dualNetwork)).toEqual(nothingKept);
});

test("ADD leaves a pod alone when it is not meshed", async ({ cluster }) => {
  const pod = await applyPod(cluster, "plain");

  expect(rulesIn(cluster.box, pod.netns)).toEqual([]);
  expect(
    logged(cluster.box)
      .filter(({ command }) => command === "ADD")
      .at(-1),
  ).toMatchObject({
    pod: { namespace: "default", name: "plain" },
    skipped: "no annotation linkerd.io/proxy-version: the pod has no proxy",
  });
});

test("ADD reads a pod's other annotations when it is meshed", async ({ cluster }) => {
  const annotations = { ...meshed, "config.linkerd.io/skip-inbound-ports": "25,5432-5435" };
  const pod = await applyPod(cluster, "annotated", { annotations });

  const ports = (line: string) => line.replace("4190,4191", "25,4190,4191,5432:5435");
  expect(rulesIn(cluster.box, pod.netns)).toEqual(redirected.map(ports));
});

test("ADD writes through the kubelet's backend when the kubelet has made its hint chains", async ({
  cluster,
}) => {
  const { containerId } = await applyPod(cluster, "meshed", { annotations: meshed });

  const { backend, backendReason } = recordOf(cluster.box, ipv4Network, containerId);
  expect(backendReason).toBe(`the kubelet's hint chains are in ${backend}`);
});

test("twenty pods have their rules when they are applied at once", async ({ cluster }) => {
  const names = Array.from({ length: 20 }, (_, i) => `pod-${i}`);

  await apply(
    cluster,
    names.map((name) => podManifest(name, { annotations: meshed })),
  );
  await waitForPods(cluster, names);

  const pods = await runningPods(cluster, names);
  expect(pods.map(({ netns }) => rulesIn(cluster.box, netns))).toEqual(names.map(() => redirected));
});

test("DEL leaves nothing when pods are deleted", async ({ cluster }) => {
  const meshedPod = await applyPod(cluster, "meshed", { annotations: meshed });
  const plainPod = await applyPod(cluster, "plain");
  expect(kept(cluster.box, ipv4Network)).toMatchObject({
    records: [`${ipv4Network},${meshedPod.containerId},eth0.json`],
    leases: [...meshedPod.ips, ...plainPod.ips].toSorted(),
  });

  await deleteAll(cluster);

  expect(kept(cluster.box, ipv4Network)).toEqual(nothingKept);
});

test("a pod's events say in our words why it does not start when ADD fails", async ({
  cluster,
}) => {
  const annotations = { ...meshed, "config.linkerd.io/skip-inbound-ports": "http" };
  await apply(cluster, [podManifest("wrong", { annotations })]);

  const message = await until(
    async () => (await eventsOf(cluster, "wrong", "FailedCreatePodSandBox"))[0],
    () => "an event about the failed sandbox",
  );

  expect(message).toContain(
    'plugin type="sluice" failed (add): pod default/wrong has annotations that cannot be honoured: config.linkerd.io/skip-inbound-ports: ',
  );
});

test("the node is not ready, in our words, while STATUS fails", async ({ cluster, skip }) => {
  skip(!release.asksStatus, "containerd 1.6 asks no plugin for its STATUS");
  const stateDir = "/proc/sluice";
  const sluice = { sluice: { "state-dir": stateDir } };
  await setChain(cluster, chain(cluster, { name: "slc-broken", sluice }));

  const broken = await until(
    async () => {
      const seen = await readiness();
      return seen.includes(stateDir) ? seen : undefined;
    },
    () => "a node that is not ready",
  );
  expect(broken).toMatch(
    /^False container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: sluice cannot work on this node: /,
  );
  await setChain(cluster, chain(cluster, { name: ipv4Network }));
  await until(
    async () => (await readiness()).startsWith("True ") || undefined,
    () => "a node that is ready again",
  );

  async function readiness(): Promise<string> {
    const condition = '.status.conditions[?(@.type=="Ready")]';
    const template = `jsonpath={${condition}.status} {${condition}.message}`;
    return await kubectl(cluster, ["get", "node", "lab", "--output", template]);
  }
});
