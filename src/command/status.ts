// STATUS: could ADD work here, now? containerd 2 asks every five seconds, so what was found out once is not asked again:
// it looks at files, and starts something only while nothing is known yet.
import { accessSync, constants } from "node:fs";
import { withProof } from "../attachment/knowledge.ts";
import { CniError, errorCode } from "../cni/error.ts";
import { intentOfConf } from "../mesh/values.ts";
import { converge } from "../netfilter/converge.ts";
import { type Family, families } from "../netfilter/table.ts";
import { chooseBackend, detectingOf, trialRulesets } from "./backend.ts";
import type { Call, Told } from "./call.ts";

/**
 * Goes over what ADD needs: values of the conf, programs, a backend that takes our rules, kubeconfig, state directory.
 * @throws CniError 50 with all that is missing, 7 for a conf that cannot be meant.
 */
export async function status(call: Call, told: Told): Promise<string> {
  const { linkerd, kubernetes } = call.plugin;
  const wanted: Family[] = linkerd.ipv6 ? [...families] : ["ipv4"];
  intentOfConf(linkerd, wanted);
  const kubeconfig = kubernetes?.kubeconfig ?? "";
  const problems = [
    ...(await problemOf(() => call.store.prepare())),
    ...(await problemOf(() => requireProgram(call, "nsenter"))),
    ...(await problemOf(() => requireReadable(kubeconfig))),
  ];
  if (problems.length === 0)
    problems.push(...(await problemOf(() => requireBackend(call, wanted, told))));
  if (problems.length === 0) return "";
  const [first, ...others] = problems;
  throw new CniError(errorCode.notAvailable, `sluice cannot work on this node: ${first}`, {
    details: others.join("; "),
  });
}

function requireProgram(call: Call, name: string): void {
  if (call.deps.find(name) !== undefined) return;
  throw new Error(`${name} is not on the node; install util-linux`);
}

function requireReadable(kubeconfig: string): void {
  if (kubeconfig !== "") accessSync(kubeconfig, constants.R_OK);
}

/** How long a refusal is taken as it was: a module may be loaded meanwhile. */
const refusalMs = 60_000;

async function requireBackend(call: Call, wanted: readonly Family[], told: Told): Promise<void> {
  const { store, deps } = call;
  const { refusal } = store.knowledge();
  const now = deps.clock.epochMs();
  if (refusal !== undefined && now - refusal.epochMs < refusalMs) throw new Error(refusal.message);
  try {
    told["backend"] = await proveBackend(call, wanted);
  } catch (error) {
    const [message = ""] = await problemOf(() => Promise.reject(error));
    store.keepKnowledge({ ...store.knowledge(), refusal: { message, epochMs: now } });
    throw error;
  }
}

async function proveBackend(call: Call, wanted: readonly Family[]): Promise<string> {
  const { choice } = await chooseBackend(call, wanted);
  const known = call.store.knowledge();
  if (!known.proven.includes(choice.backend)) {
    const { client, remainingMs, sleep } = detectingOf(call);
    await converge(
      { client, place: "scratch", choice, remainingMs, sleep },
      trialRulesets(call, wanted),
    );
    call.store.keepKnowledge({ ...known, proven: withProof(known, choice.backend).proven });
  }
  return choice.backend;
}

async function problemOf(work: () => void | Promise<void>): Promise<string[]> {
  try {
    await work();
    return [];
  } catch (error) {
    if (error instanceof CniError && error.details !== "") {
      return [`${error.message} (${error.details})`];
    }
    return [error instanceof Error ? error.message : String(error)];
  }
}
