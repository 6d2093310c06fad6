// Calls on the world of the commands: the pod emoji/web, in a netns with addresses of both families, under the conf that the
// states of lab/states.ts are about.
import type { Output } from "../../src/command/run.ts";
import type { Backend, Family } from "../../src/netfilter/table.ts";
import { podAddresses } from "../lab/case.ts";
import { linkerd, ownLines, type StateName, states } from "../lab/states.ts";
import type { ToolName } from "./iptables.ts";
import { netnsPath, type World } from "./world.ts";

export const prevResult = {
  cniVersion: "1.1.0",
  ips: [{ address: podAddresses.ipv4 }, { address: podAddresses.ipv6 }],
};

export const conf = {
  cniVersion: "1.1.0",
  name: "net",
  type: "sluice",
  linkerd: { ...linkerd, "iptables-mode": "nft" },
  prevResult,
};

export const env = {
  CNI_CONTAINERID: "c0ffee",
  CNI_NETNS: netnsPath,
  CNI_IFNAME: "eth0",
  CNI_ARGS: "IgnoreUnknown=1;K8S_POD_NAMESPACE=emoji;K8S_POD_NAME=web",
  CNI_PATH: "/opt/cni/bin",
};

type Change = {
  readonly env?: Readonly<Record<string, string>>;
  readonly conf?: Readonly<Record<string, unknown>>;
};

/** One call; `change` replaces variables, and keys of the conf. */
export function cni(world: World, command: string, change: Change = {}): Promise<Output> {
  return world.call({ CNI_COMMAND: command, ...env, ...change.env }, { ...conf, ...change.conf });
}

/** The conf with some of its linkerd object replaced. */
export function withLinkerd(change: object): Change {
  return { conf: { linkerd: { ...conf.linkerd, ...change } } };
}

export function toolOf(backend: Backend, family: Family): ToolName {
  return `${family === "ipv4" ? "iptables" : "ip6tables"}-${backend}`;
}

/** Brings both families of the pod's netns into a state. */
export function loadState(world: World, backend: Backend, name: StateName): void {
  for (const family of ["ipv4", "ipv6"] as const) {
    world.iptables.load(netnsPath, toolOf(backend, family), states[name]);
  }
}

/** What save prints of the pod's netns. */
export function saved(world: World, backend: Backend, family: Family): string {
  return world.iptables.save(netnsPath, toolOf(backend, family));
}

/** What there is of ours in the pod's netns. */
export function own(world: World, backend: Backend, family: Family): string[] {
  return ownLines(saved(world, backend, family));
}

export function succeeded(stdout: string): Output {
  return { exitCode: 0, stdout, stderr: "" };
}

/** A call that ended with this error. */
export function failed(code: number, msg: string, details = ""): Output {
  const more = details === "" ? {} : { details };
  const stdout = JSON.stringify({ cniVersion: conf.cniVersion, code, msg, ...more });
  return { exitCode: 1, stdout, stderr: "" };
}
