// A pod and a peer on one wire, each with listeners that say who was reached.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { execaSync } from "execa";
import { type Family, families } from "../../src/netfilter/table.ts";
import type { LabNetns } from "../lab/netns.ts";
import { node } from "../lab/plugin.ts";
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
  readonly over?: "udp";
};

export type Wire = {
  /** Makes the connection and gives what the listener said: which side it is on, and on which port it was reached. */
  readonly connect: (connection: Connection, family: Family) => string;
};

/** A test that is given an attachment whose netns is the pod's side of a wire. */
export const test = level.extend(
  "wire",
  async ({ attachment, other }, { onCleanup }): Promise<Wire> => {
    const sides = { pod: attachment.netns, peer: other };
    join2(sides.pod, sides.peer);
    const listeners = [listen("pod", sides.pod), listen("peer", sides.peer)];
    onCleanup(() => {
      for (const { kill } of listeners) kill();
    });
    await Promise.all(listeners.map(({ ready }) => ready));
    return {
      connect: ({ from, to, port, over = "tcp" }, family) => {
        const { side, uid, gid } = clients[from];
        const target = `/dev/${over}/${addresses[to][family]}/${port}`;
        return ask(sides[side].name, [uid, gid], target);
      },
    };
  },
);
