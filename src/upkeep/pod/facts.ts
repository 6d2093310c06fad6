// Is this attachment's pod to be redirected, and what does it say about how? From the runtime where it tells, else from the
// API; and the API only for pods that may be meshed.
import { isNamed, parseArgs, podUid } from "../../cni/args.ts";
import { isJsonObject, member } from "../../cni/conf.ts";
import { CniError, errorCode } from "../../cni/error.ts";
import { type Call, subjectOf } from "../../command/call.ts";
import type { ApiPod } from "../../kube/objects.ts";
import type { KubeReader } from "../../kube/reader.ts";
import { UnansweredError } from "../../kube/unanswered.ts";
import {
  type Annotations,
  isMarked,
  originOf,
  type PodFacts,
  skipReason,
} from "../../mesh/linkerd/pod.ts";
import { apiServerPorts } from "../../mesh/linkerd/values.ts";
import type { PortRange } from "../../redirect/port.ts";

/** What a pod says about its redirect. */
export type PodWords = {
  readonly facts: PodFacts;
  /** Ports of the API server, for a pod of the control plane. */
  readonly apiServerPorts: readonly PortRange[];
};

/** What becomes of the pod: redirected by the conf alone, redirected as it says, or left alone for a reason. */
export type Verdict =
  | { readonly kind: "standalone" }
  /** What the pod says is asked for later: it may take the API once more. */
  | { readonly kind: "pod"; readonly words: () => Promise<PodWords> }
  | { readonly kind: "skip"; readonly reason: string };

/** The capability by which containerd and CRI-O hand over a pod's annotations. */
const annotationsCapability = "io.kubernetes.cri.pod-annotations";

/**
 * Judges the attachment's pod. No value of the conf is judged here, but for those that say how pods are known.
 * @throws CniError 11 or 103 when a pod that may be meshed cannot be read; 7 when the conf names no way to read it.
 */
export async function judgePod(call: Call): Promise<Verdict> {
  const source = sourceOf(call);
  if (source.kind === "conf") return { kind: "standalone" };
  const reason = skipByName(call);
  if (reason !== undefined) return { kind: "skip", reason };
  if (source.kind === "annotations") return judgeByAnnotations(call, source.annotations);
  if (isNamed(call.pod)) return await judgeByApi(call, source.kubeconfig);
  // Without a name nobody can be asked; annotations, where they are sent, tell all the same.
  const annotations = runtimeAnnotations(call.network.document);
  return annotations === undefined
    ? { kind: "skip", reason: "the runtime names no pod" }
    : judgeByAnnotations(call, annotations);
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

/** Namespaces that are left alone where nothing else is known of a pod, and nobody wrote a list. */
const usuallyExcluded: readonly string[] = ["kube-system"];

// Asked first: these never wait for the API, least of all the agent's own pod, which brings the token to ask it with.
function skipByName({ pod, plugin }: Call): string | undefined {
  const { namespace, name } = pod;
  if (namespace === "") return undefined;
  const { "exclude-namespaces": written = [], "agent-pod": agent } = plugin.sluice;
  if (written.includes(namespace)) return `namespace ${namespace} is excluded`;
  const isAgent = agent?.namespace === namespace && name.startsWith(agent["name-prefix"]);
  return isAgent ? "the pod is the node agent's own" : undefined;
}

function judgeByAnnotations(call: Call, annotations: Annotations): Verdict {
  const reason = skipReason({ annotations, spec: undefined });
  if (reason !== undefined) return { kind: "skip", reason };
  const words = () => {
    const usual = apiServerPorts(call.plugin.sluice);
    const isControlPlane = guessControlPlane(call, annotations);
    const facts = { annotations, namespaceAnnotations: {}, isControlPlane, spec: undefined };
    return Promise.resolve({ facts, apiServerPorts: usual });
  };
  return { kind: "pod", words };
}

// The runtime hands over no labels, which would tell. In the control plane's namespace there are other pods too: those
// that the injector gave their proxy.
function guessControlPlane({ pod, plugin, log }: Call, annotations: Annotations): boolean {
  const { "control-plane-namespace": namespaces, "api-server-ports": ports } = plugin.sluice;
  const isListed = [namespaces].flat().includes(pod.namespace);
  const origin = originOf(annotations);
  if (!isListed && origin === "installed") log.warn({ pod }, unlistedWarning);
  if (!isListed || origin === "injected") return false;
  log.info(
    { pod, ports },
    "taken for the mesh's control plane: the API server's ports are excluded",
  );
  return true;
}

const unlistedWarning =
  "made by Linkerd's chart or command line, in a namespace that sluice.control-plane-namespace does not name: if it is the control plane, it cannot reach the API server";

async function judgeByApi(call: Call, kubeconfig: string): Promise<Verdict> {
  const asked = await ask(call, kubeconfig);
  if ("reason" in asked) return { kind: "skip", ...asked };
  const { kube, found } = asked;
  requireSamePod(call, found);
  const reason = skipReason(found);
  if (reason !== undefined) return { kind: "skip", reason };
  const words = async () => {
    const usual = apiServerPorts(call.plugin.sluice);
    const namespaceAnnotations = isMarked(found.annotations)
      ? {}
      : await kube.namespaceAnnotations(call.pod.namespace);
    const ports = found.isControlPlane ? await readApiServerPorts(call, kube, usual) : [];
    return { facts: { ...found, namespaceAnnotations }, apiServerPorts: ports };
  };
  return { kind: "pod", words };
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

type Asked = { readonly kube: KubeReader; readonly found: ApiPod };

// While the API is away, pods that may be meshed do not start; others should.
async function ask(call: Call, kubeconfig: string): Promise<Asked | { readonly reason: string }> {
  const { deps, pod, remainingMs } = call;
  let kube: KubeReader | undefined;
  try {
    kube = await deps.openKube({ kubeconfig, clock: deps.clock, remainingMs });
    return { kube, found: await kube.pod(pod.namespace, pod.name) };
  } catch (error) {
    const isAnswer = kube !== undefined && !(error instanceof UnansweredError);
    const reason = isAnswer ? undefined : reasonUnasked(call, kube);
    if (reason === undefined) throw error;
    call.log.warn({ err: error }, reason);
    return { reason };
  }
}

// The runtime's annotations, where it sends them, tell as well as they do for a conf that goes by them.
function reasonUnasked(call: Call, kube: KubeReader | undefined): string | undefined {
  const { network, pod, plugin } = call;
  const annotations = runtimeAnnotations(network.document);
  if (annotations !== undefined) {
    const isUnmarked = skipReason({ annotations, spec: undefined }) !== undefined;
    return isUnmarked && kube !== undefined
      ? "the API server does not answer, and the runtime's annotations mark no proxy"
      : undefined;
  }
  const isUsual =
    plugin.sluice["exclude-namespaces"] === undefined && usuallyExcluded.includes(pod.namespace);
  return isUsual ? `the API server does not answer, and the pod is in ${pod.namespace}` : undefined;
}

// The control plane must come up also where it may not read services: the usual ports are a good guess.
async function readApiServerPorts(
  call: Call,
  kube: KubeReader,
  usual: readonly PortRange[],
): Promise<readonly PortRange[]> {
  try {
    return await kube.apiServerPorts();
  } catch (error) {
    call.log.warn({ err: error }, "the API server's ports are taken from the conf");
    return usual;
  }
}
