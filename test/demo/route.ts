// Makes one HTTP request and finds the way that it took, from the app back to the client: each hop's own end of the
// connection onwards is the peer that the next one saw, so the ports prove the chain, and silence proves nothing.
import { setTimeout } from "node:timers/promises";
import { execa } from "execa";
import { type Pod, searchPath } from "../lab/host.ts";
import { inNetns } from "../lab/pod-nat.ts";
import { until } from "./daemon.ts";
import { asUser, type Hop, type Sidecar } from "./sidecar.ts";

export type Route = {
  /** The client's own end of its connection. */
  readonly client: string;
  /** Where the client wanted to go. */
  readonly target: string;
  /** The proxies on the way, from the client to the app. */
  readonly hops: readonly Hop[];
  /** Whom the app saw. */
  readonly peer: string;
  /** Connections that went through a proxy meanwhile and are not of this way. */
  readonly strays: readonly Hop[];
};

export type Client = { readonly pod: Pod; readonly uid: number };

/** Requests `target` (`ip:port`) and follows the connection back through the sidecars. */
export async function request(
  client: Client,
  target: string,
  sidecars: readonly Sidecar[],
): Promise<Route> {
  const before = sidecars.map(({ hops }) => hops().length);
  const fresh = () => sidecars.flatMap(({ hops }, i) => hops().slice(before[i]));
  const { peer, own } = await get(client, target);
  const hops = await followBack(peer, own, fresh);
  await setTimeout(graceMs);
  const onTheWay = new Set(hops.map(({ onward }) => onward));
  const strays = fresh().filter(({ onward }) => !onTheWay.has(onward));
  return { client: own, target, hops, peer, strays };
}

/** How long a line may take that should not come. */
const graceMs = 50;

async function get({ pod, uid }: Client, target: string): Promise<{ peer: string; own: string }> {
  const curl = ["curl", "--disable", "--silent", "--show-error", "--max-time", "10"];
  const write = ["--write-out", "%{local_ip}:%{local_port}", `http://${target}/`];
  const [file = "", ...args] = inNetns(pod.path, [...asUser(uid), ...curl, ...write]);
  const options = { env: { PATH: searchPath }, extendEnv: false, cwd: "/", reject: false };
  const { exitCode, stdout, stderr } = await execa(file, args, options);
  if (exitCode !== 0) throw new Error(`No answer from ${target}: ${stderr}`);
  const [peer = "", own = ""] = stdout.split("\n");
  return { peer, own };
}

async function followBack(peer: string, client: string, fresh: () => Hop[]): Promise<Hop[]> {
  const hops: Hop[] = [];
  for (let at = peer; at !== client; at = hops[0]?.from ?? client) {
    const look = () => fresh().find(({ onward }) => onward === at);
    hops.unshift(await until(look, `the proxy that the app's peer ${at} should be`));
  }
  return hops;
}
