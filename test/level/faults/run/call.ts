// Calls of the plugin about a pod with both families, as a runtime makes them.
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Backend } from "../../../../src/netfilter/table.ts";
import type { LabNetns } from "../../../lab/netns.ts";
import { plugin } from "../../../lab/plugin.ts";
import { linkerd } from "../../../lab/states.ts";

export type Subject = {
  readonly netns: LabNetns;
  readonly backend: Backend;
  readonly stateDir: string;
  /** A directory that is put ahead of PATH: the one variable that the plugin hands on to what it starts. */
  readonly mark?: string;
};

export type Answer = {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
};

/** The plugin conf: the one that the states of test/lab/states.ts are about. */
export function confOf({ backend, stateDir }: Subject): string {
  return JSON.stringify({
    cniVersion: "1.1.0",
    name: "lab",
    type: "sluice",
    linkerd: { ...linkerd, "iptables-mode": backend },
    sluice: { "state-dir": stateDir },
    prevResult: {
      cniVersion: "1.1.0",
      ips: [{ address: "10.9.0.2/24" }, { address: "fd00:9::2/64" }],
    },
  });
}

/** The plugin's environment in a call. */
export function environmentOf(
  command: string,
  { netns, mark = "/usr/bin" }: Subject,
): Record<string, string> {
  return {
    PATH: `${mark}:${process.env["PATH"] ?? ""}`,
    CNI_COMMAND: command,
    CNI_CONTAINERID: "c1",
    CNI_NETNS: netns.path,
    CNI_IFNAME: "eth0",
    CNI_PATH: "/opt/cni/bin",
  };
}

/** One call, to its end. */
export async function call(command: string, subject: Subject): Promise<Answer> {
  const child = spawn(plugin, [], { env: environmentOf(command, subject) });
  const said = { stdout: "", stderr: "" };
  child.stdout.on("data", (data) => {
    said.stdout += String(data);
  });
  child.stderr.on("data", (data) => {
    said.stderr += String(data);
  });
  child.stdin.end(confOf(subject));
  await once(child, "close");
  return { exitCode: child.exitCode, ...said };
}
