// STATUS: could ADD work here, now? containerd 2 asks every five seconds, so what was found out once is not asked again:
// it looks at files, and starts something only when they are not those of its last answer.
import { statSync } from "node:fs";
import { withProof, withReadiness } from "../attachment/knowledge.ts";
import { CniError, errorCode } from "../cni/error.ts";
import { intentOfConf } from "../mesh/values.ts";
import { converge, isRefusal } from "../netfilter/converge.ts";
import { tryBackends } from "../netfilter/detect.ts";
import { type Backend, backends, type Family, families } from "../netfilter/table.ts";
import { type Chosen, chooseBackend, detectingOf, trialRulesets } from "./backend.ts";
import type { Call, Told } from "./call.ts";

/**
 * Goes over what ADD needs: values of the conf, programs, a backend that takes our rules, kubeconfig, state directory.
 * @throws CniError 50 with all that is missing, 7 for a conf that cannot be meant.
 */
export async function status(call: Call, told: Told): Promise<string> {
  const { linkerd } = call.plugin;
  const wanted: Family[] = linkerd.ipv6 ? [...families] : ["ipv4"];
  intentOfConf(linkerd, wanted);
  const problems = [
    ...(await problemOf(() => call.store.prepare())),
    ...(await problemOf(() => requireProgram(call, "nsenter"))),
  ];
  if (problems.length === 0) problems.push(...(await look(call, wanted, told)));
  else problems.push(...(await problemOf(() => readKubeconfig(call))));
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

// As ADD will read it; nothing is sent to the server.
async function readKubeconfig({ plugin, deps, remainingMs }: Call): Promise<void> {
  const kubeconfig = plugin.kubernetes?.kubeconfig ?? "";
  const asks = kubeconfig !== "" && plugin.sluice["pod-source"] !== "annotations";
  if (asks) await deps.openKube({ kubeconfig, clock: deps.clock, remainingMs });
}

async function look(call: Call, wanted: readonly Family[], told: Told): Promise<string[]> {
  const circumstances = circumstancesOf(call);
  const ready = call.store.knowledge().ready?.find((one) => one.circumstances === circumstances);
  if (ready !== undefined) {
    told["backend"] = ready.backend;
    return [];
  }
  const problems = await problemOf(() => readKubeconfig(call));
  if (problems.length > 0) return problems;
  return await problemOf(async () => {
    told["backend"] = await requireBackend(call, wanted, circumstances);
  });
}

const suffixes = ["", ...backends.map((backend) => `-${backend}`)];
const programs = [
  "nsenter",
  "unshare",
  ...["iptables", "ip6tables"].flatMap((prefix) =>
    suffixes.flatMap((suffix) => [`${prefix}${suffix}-restore`, `${prefix}${suffix}-save`]),
  ),
];

// All that the answer hangs on: the conf's wishes, and the files that they lead to, as they are now.
function circumstancesOf({ plugin, deps }: Call): string {
  const { linkerd, kubernetes } = plugin;
  const files = [kubernetes?.kubeconfig || undefined, ...programs.map(deps.find)];
  return [linkerd["iptables-mode"], linkerd.ipv6, ...files.map(identityOf)].join(" ");
}

function identityOf(file: string | undefined): string {
  if (file === undefined) return "-";
  try {
    const { dev, ino, size, mtimeMs } = statSync(file);
    return [dev, ino, size, mtimeMs].join(":");
  } catch {
    // Named and not there, which is not the same as not named: what needs it will say so.
    return "absent";
  }
}

/** How long a refusal is taken as it was: a module may be loaded meanwhile. */
const refusalMs = 60_000;

async function requireBackend(
  call: Call,
  wanted: readonly Family[],
  circumstances: string,
): Promise<string> {
  const { store, deps } = call;
  const { refusal } = store.knowledge();
  const epochMs = deps.clock.epochMs();
  const isRecent = Math.abs(epochMs - (refusal?.epochMs ?? 0)) < refusalMs;
  if (refusal?.circumstances === circumstances && isRecent) throw new Error(refusal.message);
  try {
    const backend = await proveBackend(call, wanted);
    store.keepKnowledge(withReadiness(store.knowledge(), { circumstances, backend }));
    return backend;
  } catch (error) {
    const [message = ""] = await problemOf(() => Promise.reject(error));
    store.keepKnowledge({
      ...store.knowledge(),
      refusal: { message, epochMs, circumstances },
    });
    throw error;
  }
}

async function proveBackend(call: Call, wanted: readonly Family[]): Promise<Backend> {
  const chosen = await chooseBackend(call, wanted);
  const known = call.store.knowledge();
  const { backend } = chosen.choice;
  // What ADDs have shown holds until STATUS has seen other circumstances than these.
  if (known.proven.includes(backend) && known.ready === undefined) return backend;
  const taken = await tryChosen(call, chosen, wanted);
  call.store.keepKnowledge({ ...known, proven: withProof(known, taken).proven });
  return taken;
}

// As ADD does: the other backend where the chosen one refuses, and nobody named it.
async function tryChosen(
  call: Call,
  { choice, free }: Chosen,
  wanted: readonly Family[],
): Promise<Backend> {
  const detecting = detectingOf(call);
  const { client, remainingMs, sleep } = detecting;
  const rulesets = trialRulesets(call, wanted);
  try {
    await converge({ client, place: "scratch", choice, remainingMs, sleep }, rulesets);
    return choice.backend;
  } catch (error) {
    if (!free || !isRefusal(error)) throw error;
    return (await tryBackends(detecting, rulesets)).backend;
  }
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
