// An ADD of the build's own that has to ask the API for its pod, so that the executable loads the API client. It comes to no
// rules: the API is asked before anything is done, and has no answer.
import { resolve } from "node:path";
import { execa } from "execa";
import { kubeconfigFile } from "./kubeconfig.ts";

/** What an executable said, and how it ended. */
export type Ended = { readonly exitCode: number; readonly stdout: string; readonly stderr: string };

const conf = JSON.stringify({
  cniVersion: "1.1.0",
  name: "build",
  type: "sluice",
  kubernetes: { kubeconfig: kubeconfigFile },
  linkerd: { "incoming-proxy-port": 4143, "outgoing-proxy-port": 4140, "proxy-uid": 2102 },
  sluice: { "pod-source": "api", "state-dir": "/proc/self/cwd/state" },
  prevResult: { cniVersion: "1.1.0", ips: [{ address: "192.0.2.2/24" }] },
});

const call = {
  CNI_COMMAND: "ADD",
  CNI_CONTAINERID: "build",
  CNI_NETNS: "/proc/self/ns/net",
  CNI_NETNS_OVERRIDE: "1",
  CNI_IFNAME: "eth0",
  CNI_PATH: "/",
  CNI_ARGS: "K8S_POD_NAMESPACE=build;K8S_POD_NAME=build",
  // Nowhere: should it come to rules all the same, there are no programs to write them.
  PATH: "/proc/self/cwd/none",
};

/**
 * Runs it in the directory `work`, with more variables in its environment.
 * @throws Error when it could not be started, was ended by a signal or did not end in 30 seconds.
 */
export async function askingAdd(
  executable: string,
  work: string,
  more: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const options = { cwd: work, extendEnv: false, reject: false, timeout: 30_000 } as const;
  const env = { ...call, ...more };
  const ran = await execa(resolve(executable), { ...options, env, input: conf });
  const { exitCode, stdout, stderr } = ran;
  if (exitCode === undefined) throw new Error(`an ADD with ${executable}: ${ran.shortMessage}`);
  return { exitCode, stdout, stderr };
}
