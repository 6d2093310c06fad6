// A pod and a peer on one wire, each with listeners that say who was reached.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { execaSync } from "execa";
import type { Family } from "../../../src/netfilter/table.ts";
import type { LabNetns } from "../../lab/netns.ts";
import { node } from "../../lab/plugin.ts";
import { test as level } from "./level.ts";

/** Who connects: the netns, the user and the group. */
const clients = {
  app: { side: "pod", uid: 1000, gid: 1000 },
  root: { side: "pod", uid: 0, gid: 0 },
  "uid 2102": { side: "pod", uid: 2102, gid: 1000 },
  "uid 2103": { side: "pod", uid: 2103, gid: 1000 },
  "gid 2102": { side: "pod", uid: 1000, gid: 2102 },
  "gid 2103": { side: "pod", uid: 1000, gid: 2103 },
  peer: { side: "peer", uid: 1000, gid: 1000 },
} as const;

/** Where to: each side has an address in two subnets, and connects from the one that the other's is in. */
const addresses = {
  pod: { ipv4: "10.9.0.2", ipv6: "fd00:9::2" },
  pod2: { ipv4: "10.9.1.2", ipv6: "fd00:9:1::2" },
  peer: { ipv4: "10.9.0.1", ipv6: "fd00:9::1" },
  peer2: { ipv4: "10.9.1.1", ipv6: "fd00:9:1::1" },
  localhost: { ipv4: "127.0.0.1", ipv6: "::1" },
} as const;

/** Where the listeners are: proxy, application, and ports that rules may leave out. */
const ports = [
  4140, 4143, 4190, 4191, 8080, 8081, 3306, 3307, 4999, 5000, 5001, 5003, 5004, 6000, 6001,
];

export type Connection = {
  readonly from: keyof typeof clients;
  readonly to: keyof typeof addresses;
  readonly port: number;
  readonly over?: "tcp" | "udp";
};

export type Wire = {
  /** Makes the connection and gives what the listener said: which side it is on, and on which port it was reached. */
  readonly connect: (connection: Connection, family: Family) => string;
  /** The same to whatever address the client is told, which may name a link: `fe80::1%eth0`. */
  readonly connectTo: (from: Connection["from"], address: string, port: number) => string;
};

/** A test that is given an attachment whose netns is the pod's side of a wire. */
export const test = level.extend(
  "wire",
  async ({ attachment, other }, { onCleanup }): Promise<Wire> => {
    const sides = { pod: attachment.netns, peer: other };
    layWire(sides.pod, sides.peer);
    const listeners = [listen("pod", sides.pod), listen("peer", sides.peer)];
    onCleanup(() => {
      for (const { kill } of listeners) kill();
    });
    await Promise.all(listeners.map(({ ready }) => ready));
    return {
      connect: ({ from, to, port, over = "tcp" }, family) => {
        const { side, uid, gid } = clients[from];
        const target = `/dev/${over}/${addresses[to][family]}/${port}`;
        return ask(sides[side].path, [uid, gid], target);
      },
      connectTo: (from, address, port) => {
        const { side, uid, gid } = clients[from];
        return ask(sides[side].path, [uid, gid], `/dev/tcp/${address}/${port}`);
      },
    };
  },
);

// Up before there are addresses: neighbours are found at once then, and a second later otherwise.
function layWire(pod: LabNetns, peer: LabNetns): void {
  pod.run("ip", [
    "link",
    "add",
    "eth0",
    "type",
    "veth",
    "peer",
    "name",
    "eth0",
    "netns",
    peer.name,
  ]);
  for (const netns of [peer, pod]) netns.run("ip", ["link", "set", "eth0", "up"]);
  addAddresses(pod, ["pod", "pod2"]);
  addAddresses(peer, ["peer", "peer2"]);
}

function addAddresses(netns: LabNetns, names: readonly (keyof typeof addresses)[]): void {
  const lines = names.flatMap((name) => [
    `address add ${addresses[name].ipv4}/24 dev eth0`,
    `address add ${addresses[name].ipv6}/64 dev eth0 nodad`,
  ]);
  netns.run("ip", ["-batch", "-"], lines.join("\n"));
}

function listen(name: string, netns: LabNetns): { ready: Promise<void>; kill: () => void } {
  const argv = [node, join(import.meta.dirname, "listener.ts"), name, ...ports.map(String)];
  const child = spawn("nsenter", [`--net=${netns.path}`, "--", ...argv], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const said = Promise.race([once(child.stdout, "data"), once(child, "exit")]);
  const ready = said.then(([first]) => {
    if (!Buffer.isBuffer(first)) throw new Error(`the ${name}'s listener did not start`);
  });
  return { ready, kill: () => child.kill("SIGKILL") };
}

// The datagram is the question; over TCP nothing needs to be said.
const question = 'exec 3<>"$0" && { [[ $0 == /dev/tcp/* ]] || echo >&3; } && exec head -n 1 <&3';

function ask(netns: string, [uid, gid]: readonly [number, number], target: string): string {
  const user = [`--reuid=${uid}`, `--regid=${gid}`, "--clear-groups"];
  const client = ["setpriv", ...user, "timeout", "5", "bash", "-c", question, target];
  const { stdout, stderr } = execaSync("nsenter", [`--net=${netns}`, "--", ...client], {
    reject: false,
  });
  return stdout || stderr || "no answer";
}
