// The built plugin behind the reference bridge, called by containerd for CRI sandboxes, as on a Kubernetes node: with the
// pods' annotations, and on a list of 1.1.0 asked for STATUS.
import { test as base, describe, expect } from "vitest";
import { boxLack, makeBox } from "./cri/box.ts";
import { meshed, redirected } from "./cri/chain.ts";
import { newContainerd, oldContainerd, type Release } from "./cri/containerd.ts";
import { crictlLack } from "./cri/crictl.ts";
import { need } from "./cri/need.ts";
import { type CriNode, makeNode } from "./cri/node.ts";
import { annotatedChain, pluginsLack } from "./cri/plugins.ts";
import { countedRedirects, kept, logged, nothingKept, rulesIn } from "./cri/traces.ts";
import { until } from "./cri/until.ts";

const network = "slc-cri";

type Kind = { readonly release: Release | undefined; readonly cniVersion: string };

/** A test that is given a node, which is one for the whole file, with our chain loaded and no sandbox on it. */
const testOn = (title: string, { release, cniVersion }: Kind) =>
  base
    .extend("lack", { scope: "file" }, () => {
      const releaseLack = release === undefined ? `${title} is not installed` : undefined;
      return boxLack() ?? pluginsLack() ?? crictlLack() ?? releaseLack;
    })
    .extend("made", { scope: "file" }, async ({ lack }, { onCleanup }) => {
      if (lack !== undefined || release === undefined) return undefined;
      const box = await makeBox("cri");
      onCleanup(box.remove);
      return await makeNode(box, release);
    })
    .extend("node", async ({ lack, made, skip }, { onCleanup }): Promise<CriNode> => {
      need(skip, lack);
      if (made === undefined) throw new Error("no node");
      await made.load(annotatedChain(made.box, { name: network, cniVersion }));
      onCleanup(() => removeAll(made));
      return made;
    });

const onOld = testOn("containerd 1.6", { release: oldContainerd(), cniVersion: "1.0.0" });
const onNew = testOn("containerd 2.4", { release: newContainerd(), cniVersion: "1.1.0" });

describe.for([
  { title: "containerd 1.6 with a list of 1.0.0", test: onOld, verbs: ["ADD", "DEL"] },
  { title: "containerd 2.4 with a list of 1.1.0", test: onNew, verbs: ["ADD", "DEL", "STATUS"] },
])("$title", ({ test, verbs }) => {
  test("ADD redirects a pod when its annotations say that it is meshed", async ({ node }) => {
    const id = await node.crictl.run({ name: "meshed", annotations: meshed });

    expect(await rulesOf(node, id)).toEqual(redirected);
  });

  test("ADD leaves a pod alone when it has no annotations", async ({ node }) => {
    const id = await node.crictl.run({ name: "plain" });

    expect(await rulesOf(node, id)).toEqual([]);
    expect(
      logged(node.box)
        .filter(({ command }) => command === "ADD")
        .at(-1),
    ).toMatchObject({
      pod: { namespace: "lab", name: "plain" },
      skipped: "no annotation linkerd.io/proxy-version: the pod has no proxy",
    });
  });

  test("ADD reads a pod's other annotations when it is meshed", async ({ node }) => {
    const annotations = { ...meshed, "config.linkerd.io/skip-inbound-ports": "25,5432-5435" };
    const id = await node.crictl.run({ name: "annotated", annotations });

    const ports = (line: string) => line.replace("4190,4191", "25,4190,4191,5432:5435");
    expect(await rulesOf(node, id)).toEqual(redirected.map(ports));
  });

  test("ADD has redirected a pod when its first process makes a connection at once", async ({
    node,
  }) => {
    const before = node.callers().length;
    const plain = await node.crictl.run({ name: "plain" });
    await until(
      () => node.callers().length > before || undefined,
      () => "the connection of a pod that is not meshed",
    );
    const id = await node.crictl.run({ name: "meshed", annotations: meshed });
    const netns = await node.crictl.netns(id);
    await until(
      () => countedRedirects(node.box, netns) > 0 || undefined,
      () => "the connection of a meshed pod",
    );

    expect(countedRedirects(node.box, netns)).toBe(1);
    expect(node.callers().slice(before)).toEqual([await node.crictl.address(plain)]);
  });

  test("ADD fails the sandbox in our words when an annotation cannot be honoured", async ({
    node,
  }) => {
    const annotations = { ...meshed, "config.linkerd.io/skip-inbound-ports": "http" };
    const run = node.crictl.run({ name: "wrong", annotations });

    await expect(run).rejects.toThrow(
      'plugin type="sluice" failed (add): pod lab/wrong has annotations that cannot be honoured: config.linkerd.io/skip-inbound-ports: ',
    );
    await until(
      async () => ((await node.crictl.all()).length === 0 ? true : undefined),
      () => "the end of the failed sandbox",
    );
    expect(kept(node.box, network)).toEqual(nothingKept);
  });

  test("DEL leaves nothing when a sandbox is stopped twice and removed", async ({ node }) => {
    const id = await node.crictl.run({ name: "meshed", annotations: meshed });
    const netns = await node.crictl.netns(id);
    const before = logged(node.box).length;
    expect(kept(node.box, network)).toMatchObject({
      records: [`${network},${id},eth0.json`],
      leases: [await node.crictl.address(id)],
      netns: [netns.replace("/run/netns/", "")],
    });

    await node.crictl.stop(id);
    expect(kept(node.box, network)).toEqual(nothingKept);
    await node.crictl.stop(id);
    await node.crictl.remove(id);

    expect(kept(node.box, network)).toEqual(nothingKept);
    const since = logged(node.box)
      .slice(before)
      .filter(({ command }) => command !== "STATUS");
    expect(since).toMatchObject(Array(3).fill({ command: "DEL", level: "info" }));
  });

  test("DEL leaves nothing when containerd was restarted while the pod ran", async ({ node }) => {
    const id = await node.crictl.run({ name: "meshed", annotations: meshed });

    await node.restartContainerd();

    expect(await rulesOf(node, id)).toEqual(redirected);
    await node.crictl.stop(id);
    expect(kept(node.box, network)).toEqual(nothingKept);
  });

  test("a dozen pods have their rules when they start at once, and leave nothing", async ({
    node,
  }) => {
    const names = Array.from({ length: 12 }, (_, i) => `pod-${i}`);
    const run = (name: string) => node.crictl.run({ name, annotations: meshed });

    const ids = await Promise.all(names.map(run));

    const rules = await Promise.all(ids.map((id) => rulesOf(node, id)));
    expect(rules).toEqual(names.map(() => redirected));
    await removeAll(node);
    expect(kept(node.box, network)).toEqual(nothingKept);
  });

  test("only verbs are called that a sandbox or the node's readiness needs", async ({ node }) => {
    const id = await node.crictl.run({ name: "meshed", annotations: meshed });
    await node.crictl.networkReady();
    await node.crictl.remove(id);

    const called = new Set(logged(node.box).map(({ command }) => command));
    expect([...called].toSorted()).toEqual(verbs);
  });
});

onNew("STATUS is asked and the network is ready when sluice can work", async ({ node }) => {
  const before = logged(node.box).length;

  expect(await node.crictl.networkReady()).toEqual({
    type: "NetworkReady",
    status: true,
    reason: "",
    message: "",
  });
  expect(logged(node.box).slice(before)).toMatchObject([{ command: "STATUS", level: "debug" }]);
});

onNew("the network is not ready, in our words, when STATUS fails", async ({ node }) => {
  const sluice = { sluice: { "state-dir": "/dev/null/state" } };
  await node.load(annotatedChain(node.box, { name: "slc-broken", cniVersion: "1.1.0", sluice }));

  expect(await node.crictl.networkReady()).toEqual({
    type: "NetworkReady",
    status: false,
    reason: "NetworkPluginNotReady",
    message: expect.stringMatching(
      /^Network plugin returns error: sluice cannot work on this node: .*\/dev\/null\/state/,
    ),
  });
});

async function rulesOf({ box, crictl }: CriNode, id: string): Promise<string[]> {
  return rulesIn(box, await crictl.netns(id));
}

async function removeAll({ crictl }: CriNode): Promise<void> {
  await Promise.all((await crictl.all()).map(crictl.remove));
}
