// The built plugin behind the reference bridge, called as CRI-O calls: VERSION when it loads the list, STATUS until that is
// content, GC once, and for each pod ADD, CHECK at once, and DEL with the list of its ADD.
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test as base, expect } from "vitest";
import { type Box, boxLack, makeBox } from "./cri/box.ts";
import { type Chain, meshed, redirected } from "./cri/chain.ts";
import { type Attachment, type Libcni, openLibcni } from "./cri/libcni.ts";
import { need } from "./cri/need.ts";
import { annotatedChain, layOutPlugins, pluginsLack } from "./cri/plugins.ts";
import { kept, nothingKept, rulesIn } from "./cri/traces.ts";

const network = "slc-crio";
const content = { ok: true, plugin: "sluice", stdout: "" };

type Node = {
  readonly box: Box;
  readonly chain: Chain;
  /** A CRI-O that has just started, with our chain or another. */
  readonly crio: (chain?: Chain) => Libcni;
  /** A pod with a netns, and lo up in it. */
  readonly pod: (name: string, annotations?: Attachment["capabilities"]) => Promise<Attachment>;
};

/** A test that is given a node without pods. */
const test = base.extend("node", async ({ skip }, { onCleanup }): Promise<Node> => {
  need(skip, boxLack() ?? pluginsLack());
  const box = await makeBox("crio");
  onCleanup(box.remove);
  // With a MAC of its own; else it takes on the lowest of its ports', and bridge's CHECK resents that while pods come.
  await box.run("ip link add slc-br0 address 02:00:00:00:00:01 type bridge".split(" "));
  const chain = annotatedChain(box, { name: network, cniVersion: "1.1.0" });
  const binDir = layOutPlugins(box);
  return {
    box,
    chain,
    crio: (other = chain) => openLibcni(box, binDir, other),
    pod: async (name, annotations = {}) => {
      await box.run(["ip", "netns", "add", name]);
      await box.run(["ip", "-n", name, "link", "set", "lo", "up"]);
      return attachmentOf(name, annotations);
    },
  };
});

test.for(["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"])(
  "VERSION lists the version of the conf list when that is %s",
  async (cniVersion, { node }) => {
    expect(await node.crio({ ...node.chain, cniVersion }).validate()).toMatchObject({ ok: true });
  },
);

test.for(["0.4.0", "1.0.0", "1.1.0"])(
  "CHECK is content at once after ADD when the list has %s",
  async (cniVersion, { node }) => {
    const crio = node.crio({ ...node.chain, cniVersion });
    const pod = await node.pod("pod", meshed);

    expect(await crio.add(pod)).toMatchObject({ ok: true, plugin: "sluice" });
    expect(await crio.check(pod)).toEqual(content);
    expect(rulesIn(node.box, pod.netns)).toEqual(redirected);
  },
);

test("CHECK is content at once after ADD when the pod is not meshed", async ({ node }) => {
  const crio = node.crio();
  const pod = await node.pod("pod");

  expect(await crio.add(pod)).toMatchObject({ ok: true, plugin: "sluice" });
  expect(await crio.check(pod)).toEqual(content);
  expect(rulesIn(node.box, pod.netns)).toEqual([]);
});

test("CHECK is content when CRI-O has started anew and the pod still runs", async ({ node }) => {
  const pod = await node.pod("pod", meshed);
  await node.crio().add(pod);

  expect(await node.crio().check(pod)).toEqual(content);
});

test("CHECK is content for each of a dozen pods when they start at once", async ({ node }) => {
  const crio = node.crio();
  const start = async (_: unknown, i: number) => {
    const pod = await node.pod(`pod-${i}`, meshed);
    return [(await crio.add(pod)).ok, await crio.check(pod)];
  };

  const started = await Promise.all(Array.from({ length: 12 }, start));

  expect(started).toEqual(Array(12).fill([true, content]));
});

test("DEL leaves nothing when the list has lost us since ADD", async ({ node }) => {
  const pod = await node.pod("pod", meshed);
  await node.crio().add(pod);
  const without = { ...node.chain, plugins: node.chain.plugins.slice(0, 1) };

  expect(await node.crio(without).del(pod.containerId, pod.netns)).toMatchObject({ ok: true });

  expect(rulesIn(node.box, pod.netns)).toEqual([]);
  expect(kept(node.box, network)).toEqual({ ...nothingKept, netns: ["pod"] });
});

test("DEL leaves nothing when CRI-O starts and the pod's netns is gone", async ({ node }) => {
  const pod = await node.pod("pod", meshed);
  await node.crio().add(pod);
  await node.box.run(["ip", "netns", "del", "pod"]);

  expect(await node.crio().del(pod.containerId, "")).toMatchObject({ ok: true });

  expect(kept(node.box, network)).toEqual(nothingKept);
});

test("DEL is content when it comes for a pod that never had an ADD", async ({ node }) => {
  const pod = await node.pod("pod", meshed);

  expect(await node.crio().del(pod.containerId, pod.netns)).toMatchObject({ ok: true });
});

test("GC forgets the pods that CRI-O does not know and keeps the others when it starts", async ({
  node,
}) => {
  const [living, gone, lost] = await Promise.all(
    ["living", "gone", "lost"].map((name) => node.pod(name, meshed)),
  );
  for (const pod of [living, gone, lost]) if (pod !== undefined) await node.crio().add(pod);
  await node.box.run(["ip", "netns", "del", "gone"]);
  await node.box.run(["ip", "netns", "del", "lost"]);
  // A crash has cost the library its cache of this one: no DEL will come for it.
  rmSync(node.crio().cacheFile("id-of-lost"));

  expect(await node.crio().gc(["id-of-living"])).toEqual(content);

  expect(kept(node.box, network)).toMatchObject({
    records: [`${network},id-of-living,eth0.json`],
    netns: ["living"],
  });
  expect(rulesIn(node.box, "/run/netns/living")).toEqual(redirected);
});

test("STATUS says what is missing until it is there when CRI-O waits for the network", async ({
  node,
}) => {
  const file = join(node.box.dir, "taken");
  writeFileSync(file, "");
  const cniVersion = "1.1.0";
  const sluice = { sluice: { "state-dir": join(file, "state") } };
  const crio = node.crio(annotatedChain(node.box, { name: network, cniVersion, sluice }));

  const { ok, stdout } = await crio.status();
  expect({ ok, ...JSON.parse(stdout) }).toEqual({
    ok: false,
    cniVersion,
    code: 50,
    msg: expect.stringMatching(/^sluice cannot work on this node: .*taken\/state/),
  });
  rmSync(file);

  expect(await crio.status()).toEqual(content);
});

function attachmentOf(name: string, annotations: Attachment["capabilities"]): Attachment {
  const containerId = `id-of-${name}`;
  const args = {
    IgnoreUnknown: "1",
    K8S_POD_NAMESPACE: "lab",
    K8S_POD_NAME: name,
    K8S_POD_INFRA_CONTAINER_ID: containerId,
    K8S_POD_UID: `uid-of-${name}`,
  };
  return {
    containerId,
    netns: `/run/netns/${name}`,
    args: Object.entries(args)
      .map((pair) => pair.join("="))
      .join(";"),
    capabilities: { "io.kubernetes.cri.pod-annotations": annotations },
  };
}
