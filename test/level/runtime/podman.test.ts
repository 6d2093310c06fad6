// The built plugin behind the reference bridge, called by podman 4's CNI backend. Podman names no pod and hands over no
// annotations: the conf alone says what is redirected.
import { test as base, expect } from "vitest";
import { plugin } from "../../lab/plugin.ts";
import { type Box, boxLack, makeBox, type Outcome } from "./cri/box.ts";
import { chainOf, linkerd, redirected } from "./cri/chain.ts";
import { need } from "./cri/need.ts";
import { pluginsLack } from "./cri/plugins.ts";
import { layOutPodman, type Podman, podmanLack } from "./cri/podman.ts";
import type { Recorded } from "./cri/recorder.ts";
import { kept, nothingKept, rulesIn } from "./cri/traces.ts";

// podman 4.3 knows the spec up to 1.0.0
const chain = chainOf({ name: "slc-podman", cniVersion: "1.0.0" });
const wrong = chainOf({
  name: "slc-wrong",
  cniVersion: "1.0.0",
  sluice: { linkerd: { ...linkerd, "proxy-uid": "proxy" } },
});

/** Podman loads all lists, and asks the plugins of each. */
const loading = ["VERSION", "VERSION"];

type Made = { readonly box: Box; readonly podman: Podman };

/** A test that is given a podman, which is one for the whole file, without containers. */
const test = base
  .extend("lack", { scope: "file" }, () => boxLack() ?? pluginsLack() ?? podmanLack())
  .extend("made", { scope: "file" }, async ({ lack }, { onCleanup }): Promise<Made | undefined> => {
    if (lack !== undefined) return undefined;
    const box = await makeBox("podman");
    onCleanup(box.remove);
    return { box, podman: layOutPodman(box, [chain, wrong]) };
  })
  .extend("node", ({ lack, made, skip }, { onCleanup }): Made => {
    need(skip, lack);
    if (made === undefined) throw new Error("no podman");
    onCleanup(async () => void (await made.podman.remove("box")));
    return made;
  });

test("ADD redirects a container when podman starts it", async ({ node: { box, podman } }) => {
  const id = succeeded(await podman.run("box", chain.name));

  const netns = await podman.netns("box");
  expect(rulesIn(box, netns)).toEqual(redirected);
  expect(kept(box, chain.name)).toMatchObject({
    records: [`${chain.name},${id},eth0.json`],
    leases: [expect.stringMatching(/^10\.214\.0\.\d+$/)],
    netns: [netns.replace("/run/netns/", "")],
  });
});

test("CHECK is content when it is called as podman called ADD", async ({
  node: { box, podman },
}) => {
  succeeded(await podman.run("box", chain.name));

  expect(await checkAs(box, lastAdd(podman))).toMatchObject({ exitCode: 0, stdout: "" });
});

test("CHECK finds the drift when it is called as podman called ADD", async ({
  node: { box, podman },
}) => {
  succeeded(await podman.run("box", chain.name));
  const inside = ["nsenter", `--net=${await podman.netns("box")}`];
  for (const backend of ["nft", "legacy"]) {
    await box.run([...inside, `iptables-${backend}`, "-t", "nat", "-F", "PROXY_INIT_OUTPUT"]);
  }

  const { exitCode, stdout } = await checkAs(box, lastAdd(podman));
  expect({ exitCode, answer: JSON.parse(stdout) }).toMatchObject({
    exitCode: 1,
    answer: { cniVersion: "1.0.0", code: 100 },
  });
});

test("DEL and ADD leave the rules as they were when podman reloads the network", async ({
  node: { box, podman },
}) => {
  succeeded(await podman.run("box", chain.name));
  const netns = await podman.netns("box");
  const before = podman.recorded().length;

  succeeded(await podman.reload("box"));

  expect(verbs(podman, before)).toEqual([...loading, "DEL", "ADD"]);
  expect(await podman.netns("box")).toBe(netns);
  expect(rulesIn(box, netns)).toEqual(redirected);
});

test("DEL leaves nothing when podman removes the container", async ({ node: { box, podman } }) => {
  succeeded(await podman.run("box", chain.name));
  const before = podman.recorded().length;

  succeeded(await podman.remove("box"));

  expect(verbs(podman, before)).toEqual([...loading, "DEL"]);
  expect(kept(box, chain.name)).toEqual(nothingKept);
});

test("podman starts no container and says why in our words when ADD fails", async ({
  node: { box, podman },
}) => {
  const { exitCode, stderr } = await podman.run("box", wrong.name);

  expect(exitCode).toBe(126);
  expect(stderr).toContain("sluice failed: invalid conf: linkerd.proxy-uid:");
  succeeded(await podman.remove("box"));
  expect(kept(box, wrong.name)).toEqual(nothingKept);
});

function succeeded({ exitCode, stdout, stderr }: Outcome): string {
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
  return stdout;
}

function lastAdd(podman: Podman): Recorded {
  const add = podman.recorded().findLast(({ verb }) => verb === "ADD");
  if (add === undefined) throw new Error("podman called no ADD");
  return add;
}

/** The very call, with another verb: sluice hands prevResult on, so it is CHECK's as well. */
async function checkAs(box: Box, { env, stdin }: Recorded): Promise<Outcome> {
  return await box.run([plugin], { env: { ...env, CNI_COMMAND: "CHECK" }, input: stdin });
}

function verbs(podman: Podman, since: number): string[] {
  return podman
    .recorded()
    .slice(since)
    .map(({ verb }) => verb);
}
