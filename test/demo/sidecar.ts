// HAProxy as a pod's sidecar: it takes what is redirected to it, passes it on to where it was going, and says so.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Pod } from "../lab/host.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

export const proxyUid = 2102;
export const proxyPorts = [4140, 4143];

/** One connection through a proxy. Addresses are `ip:port`. */
export type Hop = {
  readonly frontend: string;
  readonly from: string;
  /** Where the connection was going before it was redirected. */
  readonly to: string;
  /** The proxy's own end of the connection onwards: what the next one sees as its peer. */
  readonly onward: string;
};

export type Sidecar = { readonly daemon: Daemon; readonly hops: () => Hop[] };

// logasap: the line is written when the connection onwards stands, so before the answer can come back through it.
const configuration = `global
  log stdout format raw local0
  maxconn 100
  nbthread 1
defaults
  mode tcp
  log global
  option logasap
  log-format "%f %ci:%cp %[dst]:%[dst_port] %[bc_src]:%[bc_src_port]"
  timeout connect 5s
  timeout client 10s
  timeout server 10s
  default_backend original
frontend outbound
  bind :4140
frontend inbound
  bind :4143
backend original
  server original 0.0.0.0:0
`;

/** Starts the pod's proxy, as the user that the rules exempt. */
export function startSidecar(pod: Pod, dir: string): Sidecar {
  const file = join(dir, "haproxy.cfg");
  writeFileSync(file, configuration, { mode: 0o644 });
  const daemon = startDaemon(pod, [...asUser(proxyUid), "haproxy", "-db", "-f", file]);
  return { daemon, hops: () => daemon.lines.map(parseHop) };
}

/** The argument list's beginning that runs a program as a user; it ends when the demo does. */
export function asUser(uid: number): string[] {
  const ids = [`--reuid=${uid}`, `--regid=${uid}`, "--clear-groups"];
  return ["setpriv", ...ids, "--pdeathsig=KILL", "--"];
}

function parseHop(line: string): Hop {
  const [frontend = "", from = "", to = "", onward = ""] = line.split(" ");
  return { frontend, from, to, onward };
}
