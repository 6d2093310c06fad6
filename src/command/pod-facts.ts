// Is this attachment's pod to be redirected, and what does it say about how? From the runtime where it tells, else from the
// API; and the API only for pods that may be meshed.
import { parseArgs, podUid } from "../cni/args.ts";
import { isJsonObject, member } from "../cni/conf.ts";
import { CniError, errorCode } from "../cni/error.ts";
import type { ApiPod } from "../kube/objects.ts";
import type { KubeReader } from "../kube/reader.ts";
import { UnansweredError } from "../kube/unanswered.ts";
import { type Annotations, type PodFacts, skipReason } from "../mesh/pod.ts";
import { apiServerPorts } from "../mesh/values.ts";
import type { PortRange } from "../redirect/port.ts";
import { type Call, subjectOf } from "./call.ts";

/** What becomes of the pod: redirected by the conf alone, redirected as it says, or left alone for a reason. */
export type Verdict =
  | { readonly kind: "standalone" }
  | {
      readonly kind: "pod";
      readonly facts: PodFacts;
      readonly apiServerPorts: readonly PortRange[];
    }
  | { readonly kind: "skip"; readonly reason: string };

/** The capability by which containerd and CRI-O hand over a pod's annotations. */
const annotationsCapability = "io.kubernetes.cri.pod-annotations";

/**
 * Judges the attachment's pod.
 * @throws CniError 11 or 103 when a pod that may be meshed cannot be read; 7 when the conf names no way to read it.
 */
export async function judgePod(call: Call): Promise<Verdict> {
  const source = sourceOf(call);
  if (source.kind === "conf") return { kind: "standalone" };
  const reason = skipByName(call);
  if (reason !== undefined) return { kind: "skip", reason };
  // Read here, not where they are needed: they shall be found wrong at the first pod, and before anything is asked.
  const ports = apiServerPorts(call.plugin.sluice);
  return source.kind === "annotations"
    ? judgeByAnnotations(call, source.annotations, ports)
    : await judgeByApi(call, source.kubeconfig, ports);
}

type Source =
  | { readonly kind: "conf" }
  | { readonly kind: "annotations"; readonly annotations: Annotations }
  | { readonly kind: "api"; readonly kubeconfig: string };

function sourceOf({ plugin, network }: Call): Source {
  const { kubernetes } = plugin;
  const named = plugin.sluice["pod-source"];
  if (named === undefined && kubernetes === undefined) return { kind: "conf" };
  const wanted = named ?? "auto";
  const kubeconfig = kubernetes?.kubeconfig ?? "";
  const annotations = runtimeAnnotations(network.document);
  if (wanted !== "api" && annotations !== undefined) return { kind: "annotations", annotations };
  if (wanted !== "annotations" && kubeconfig !== "") return { kind: "api", kubeconfig };
  if (wanted === "auto" && kubernetes === undefined) return { kind: "conf" };
  const ways = {
    annotations: `the runtime sent no ${annotationsCapability} (set it in the entry's capabilities)`,
    api: "kubernetes.kubeconfig is not set",
  };
  throw new CniError(errorCode.invalidConf, "invalid conf: there is no way to know the pod", {
    details: wanted === "auto" ? `${ways.annotations}, and ${ways.api}` : ways[wanted],
  });
}

// containerd sends null for a pod that has none.
function runtimeAnnotations(document: Call["network"]["document"]): Annotations | undefined {
  const runtimeConfig = member(document, "runtimeConfig")?.value;
  if (!isJsonObject(runtimeConfig)) return undefined;
  const found = member(runtimeConfig, annotationsCapability);
  if (found === undefined) return undefined;
  const entries = Object.entries(isJsonObject(found.value) ? found.value : {});
  const texts = entries.filter((entry): entry is [string, string] => typeof entry[1] === "string");
  return Object.fromEntries(texts);
}

// Asked first: these never wait for the API, least of all the agent's own pod, which brings the token to ask it with.
function skipByName({ pod, plugin }: Call): string | undefined {
  const { namespace, name } = pod;
  if (namespace === "" || name === "") return "the runtime names no pod";
  const { "exclude-namespaces": excluded, "agent-pod": agent } = plugin.sluice;
  if (excluded.includes(namespace)) return `namespace ${namespace} is excluded`;
  const isAgent = agent?.namespace === namespace && name.startsWith(agent["name-prefix"]);
  return isAgent ? "the pod is the node agent's own" : undefined;
}

type Ports = readonly PortRange[];

function judgeByAnnotations(call: Call, annotations: Annotations, apiServerPorts: Ports): Verdict {
  const reason = skipReason({ annotations, spec: undefined });
  if (reason !== undefined) return { kind: "skip", reason };
  const isControlPlane = call.pod.namespace === call.plugin.sluice["control-plane-namespace"];
  const facts = { annotations, namespaceAnnotations: {}, isControlPlane, spec: undefined };
  return { kind: "pod", facts, apiServerPorts };
}

async function judgeByApi(call: Call, kubeconfig: string, usual: Ports): Promise<Verdict> {
  const { deps, pod, remainingMs } = call;
  const kube = await deps.openKube({ kubeconfig, clock: deps.clock, remainingMs });
  const found = await readUnlessUnmeshed(call, () => kube.pod(pod.namespace, pod.name));
  if (found === undefined) return { kind: "skip", reason: unaskedReason };
  requireSamePod(call, found);
  const reason = skipReason(found);
  if (reason !== undefined) return { kind: "skip", reason };
  const namespaceAnnotations = await kube.namespaceAnnotations(pod.namespace);
  const apiServerPorts = found.isControlPlane ? await readApiServerPorts(call, kube, usual) : [];
  return { kind: "pod", facts: { ...found, namespaceAnnotations }, apiServerPorts };
}

// A pod of a StatefulSet comes back under its name: what the API says of the new one is not about this sandbox.
function requireSamePod(call: Call, found: ApiPod): void {
  const wanted = podUid(parseArgs(call.request.args));
  if (wanted === "" || found.uid === wanted || found.isMirror) return;
  throw new CniError(
    errorCode.tryAgainLater,
    `${subjectOf(call)} of the API server is another pod of that name: UID ${found.uid.slice(0, 64)}, not ${wanted.slice(0, 64)}`,
    { details: "the pod was replaced; the runtime tries again, or gives this sandbox up" },
  );
}

const unaskedReason = "the API server does not answer, and the runtime's annotations mark no proxy";

// While the API is away, pods that may be meshed do not start; others should, and the runtime's annotations, where it
// sends them, tell them apart as well as they do for a conf that goes by them.
async function readUnlessUnmeshed<T>(call: Call, read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    const annotations = runtimeAnnotations(call.network.document);
    const isAway = error instanceof UnansweredError;
    const isUnmarked =
      annotations !== undefined && skipReason({ annotations, spec: undefined }) !== undefined;
    if (!isAway || !isUnmarked) throw error;
    call.log.warn({ err: error }, unaskedReason);
    return undefined;
  }
}

// The control plane must come up also where it may not read services: the usual ports are a good guess.
async function readApiServerPorts(call: Call, kube: KubeReader, usual: Ports): Promise<Ports> {
  try {
    return await kube.apiServerPorts();
  } catch (error) {
    call.log.warn({ err: error }, "the API server's ports are taken from the conf");
    return usual;
  }
}
