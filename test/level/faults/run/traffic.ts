// A pod and a peer on one wire, with a proxy and an application that say who was reached, and connections that are opened
// all the time, both ways and in both families. Who answers them shows whether there was an instant without redirect.
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { type LabNetns, makeNetns } from "../../../lab/netns.ts";
import { node } from "../../../lab/plugin.ts";

/** What the connections of one direction met: how many were answered by whom, and how many were opened a second. */
export type Met = {
  readonly answers: Readonly<Record<string, number>>;
  readonly perSecond: number;
};

export type Traffic = {
  readonly pod: LabNetns;
  /** Starts to connect: outbound from the pod, inbound from the peer. */
  readonly start: (perSecond: { readonly outbound: number; readonly inbound: number }) => void;
  /** Stops, and tells what was met. */
  readonly stop: () => Promise<{ readonly outbound: Met; readonly inbound: Met }>;
  readonly remove: () => void;
};

/** Who answers when all is redirected. */
export const proxied = { outbound: "pod 4140", inbound: "pod 4143" } as const;

const appPort = 8080;
const addresses = {
  pod: ["10.9.0.2", "fd00:9::2"],
  peer: ["10.9.0.1", "fd00:9::1"],
} as const;

type Child = ChildProcessByStdio<Writable, Readable, null>;

/** Makes the pod and its peer; nothing is redirected yet. */
export async function makeTraffic(): Promise<Traffic> {
  const sides = { pod: makeNetns("pod"), peer: makeNetns("peer") };
  const children: Child[] = [];
  const run = (side: LabNetns, file: string, args: readonly (string | number)[]): Child => {
    const script = join(import.meta.dirname, file);
    const child = spawn(
      "nsenter",
      [`--net=${side.path}`, "--", node, script, ...args.map(String)],
      { stdio: ["pipe", "pipe", "inherit"] },
    );
    children.push(child);
    return child;
  };
  const remove = () => {
    for (const child of children) child.kill("SIGKILL");
    for (const netns of [sides.pod, sides.peer]) netns.remove();
  };
  try {
    layWire(sides);
    const listener = "../../netns/listener.ts";
    const listeners = [
      run(sides.pod, listener, ["pod", 4140, 4143, appPort]),
      run(sides.peer, listener, ["peer", appPort]),
    ];
    await Promise.all(listeners.map(({ stdout }) => once(stdout, "data")));
  } catch (error) {
    remove();
    throw error;
  }
  let running: { readonly outbound: Child; readonly inbound: Child } | undefined;
  return {
    pod: sides.pod,
    start: ({ outbound, inbound }) => {
      running = {
        outbound: run(sides.pod, "connector.ts", [outbound, appPort, ...addresses.peer]),
        inbound: run(sides.peer, "connector.ts", [inbound, appPort, ...addresses.pod]),
      };
    },
    stop: async () => {
      if (running === undefined) throw new Error("there is no traffic");
      const [outbound, inbound] = await Promise.all([met(running.outbound), met(running.inbound)]);
      return { outbound, inbound };
    },
    remove,
  };
}

async function met(connector: Child): Promise<Met> {
  let text = "";
  connector.stdout.on("data", (data) => {
    text += String(data);
  });
  connector.stdin.end();
  await once(connector, "close");
  const { counts, opened, seconds } = JSON.parse(text);
  return { answers: counts, perSecond: Math.round(opened / seconds) };
}

function layWire({ pod, peer }: { readonly pod: LabNetns; readonly peer: LabNetns }): void {
  const link = ["link", "add", "eth0", "type", "veth", "peer", "name", "eth0"];
  pod.run("ip", [...link, "netns", peer.name]);
  for (const netns of [peer, pod]) netns.run("ip", ["link", "set", "eth0", "up"]);
  for (const [netns, own] of [
    [pod, addresses.pod],
    [peer, addresses.peer],
  ] as const) {
    netns.run("ip", ["address", "add", `${own[0]}/24`, "dev", "eth0"]);
    netns.run("ip", ["address", "add", `${own[1]}/64`, "dev", "eth0", "nodad"]);
  }
}
