// STATUS: could ADD work here, now? containerd 2 asks every five seconds, so it only looks at files and starts nothing.
import { CniError, errorCode } from "../cni/error.ts";
import { intentOfConf } from "../mesh/values.ts";
import { chooseBackend } from "../netfilter/backend.ts";
import { type Family, families } from "../netfilter/table.ts";
import { modeOf } from "./add.ts";
import type { Call, Told } from "./call.ts";

/**
 * Goes over what ADD needs: values of the conf, programs, state directory.
 * @throws CniError 50 with all that is missing, 7 for a conf that cannot be meant.
 */
export function status(call: Call, told: Told): Promise<string> {
  const { linkerd } = call.plugin;
  const wanted: Family[] = linkerd.ipv6 ? [...families] : ["ipv4"];
  intentOfConf(linkerd, wanted);
  const problems = [
    ...problemOf(() => {
      told["backend"] = chooseBackend(modeOf(linkerd), wanted, call.deps.find).backend;
    }),
    ...problemOf(() => requireProgram(call, "nsenter")),
    ...problemOf(() => call.store.prepare()),
  ];
  if (problems.length === 0) return Promise.resolve("");
  throw new CniError(errorCode.notAvailable, `sluice cannot work on this node: ${problems[0]}`, {
    details: problems.slice(1).join("; "),
  });
}

function requireProgram(call: Call, name: string): void {
  if (call.deps.find(name) !== undefined) return;
  throw new Error(`${name} is not on the node; install util-linux`);
}

function problemOf(work: () => void): string[] {
  try {
    work();
    return [];
  } catch (error) {
    if (error instanceof CniError && error.details !== "") {
      return [`${error.message} (${error.details})`];
    }
    return [error instanceof Error ? error.message : String(error)];
  }
}
