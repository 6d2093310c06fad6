// A node with a containerd and nobody but the test in the place of the kubelet.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { node as nodeProgram } from "../../../lab/plugin.ts";
import type { Box } from "./box.ts";
import { type Chain, gateway } from "./chain.ts";
import { type Containerd, pauseImage, type Release, startContainerd } from "./containerd.ts";
import { type Crictl, crictlOf } from "./crictl.ts";
import { layOutBusybox, writeImage } from "./image.ts";
import { until } from "./until.ts";

export type CriNode = {
  readonly box: Box;
  readonly crictl: Crictl;
  /** Has containerd load a chain, and waits until it has. */
  readonly load: (chain: Chain) => Promise<void>;
  readonly restartContainerd: () => Promise<void>;
  /** The addresses from which `dialled` was reached so far. */
  readonly callers: () => string[];
};

/** Where each sandbox' first process connects to before it does anything else: a port of the node's. */
const dialled = 7777;

const first = `nc -w 1 ${gateway} ${dialled} </dev/null; exec sleep 1000000`;

/** Makes the node; its box is the caller's to remove. */
export async function makeNode(box: Box, release: Release): Promise<CriNode> {
  let containerd: Containerd = await startContainerd(box, release);
  const image = join(box.dir, "pause.tar");
  const root = layOutBusybox(join(box.dir, "root"));
  writeImage(image, { name: pauseImage, root, command: ["/bin/sh", "-c", first] });
  await containerd.importImage(image);
  const listener = join(import.meta.dirname, "listener.ts");
  const service = box.start("listener", [nodeProgram, listener, String(dialled)]);
  const heard = () => readFileSync(join(box.dir, "log/listener.log"), "utf8").split("\n");
  await until(
    () => heard().includes("listening") || undefined,
    () => `a listener; it says ${service.tail()}`,
  );
  const crictl = crictlOf(box, containerd.socket);
  return {
    box,
    crictl,
    load: (chain) => containerd.setChain(chain, crictl),
    restartContainerd: async () => {
      await containerd.service.stop();
      containerd = await startContainerd(box, release);
    },
    callers: () => heard().filter((line) => line.includes(".")),
  };
}
