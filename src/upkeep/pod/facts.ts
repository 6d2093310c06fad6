// Is this attachment's pod to be redirected, and what does it say about how? From the runtime where it tells, else from the
// API; and the API only for pods that may be meshed.
import { isNamed } from "../../cni/args.ts";
import { annotationsCapability } from "../../cni/capability.ts";
import { Fault } from "../../fault.ts";
import type { ApiPod } from "../../kube/objects.ts";
import type { KubeReader } from "../../kube/reader.ts";
import { UnansweredError } from "../../kube/unanswered.ts";
import type { Annotations, KnownPod } from "../../mesh/pod.ts";
import type { Said } from "../../mesh/profile.ts";
import { type PortRange, portWords } from "../../redirect/port.ts";
import { nameOf } from "../task.ts";
import type { Asking } from "./asking.ts";

/** What a pod says about its redirect. */
export type PodWords = Pick<Said, "facts" | "apiServerPorts">;

/** What becomes of the pod: redirected by the conf alone, redirected as it says, or left alone for a reason. */
export type Verdict =
  | { readonly kind: "standalone" }
  /** What the pod says is asked for later: it may take the API once more. */
  | { readonly kind: "pod"; readonly words: () => Promise<PodWords> }
  | { readonly kind: "skip"; readonly reason: string };

/**
 * Judges the attachment's pod. No value of the conf is judged here, but for those that say how pods are known.
 * @throws Fault try-again or pod-unreadable when a pod that may be meshed cannot be read; invalid-conf when the conf names no
 * way to read it.
 */
export async function judgePod(asking: Asking): Promise<Verdict> {
  const source = sourceOf(asking);
  if (source.kind === "conf") return { kind: "standalone" };
  const reason = skipByName(asking);
  if (reason !== undefined) return { kind: "skip", reason };
  if (source.kind === "annotations") return judgeByAnnotations(asking, source.annotations);
  if (isNamed(asking.subject.pod)) return await judgeByApi(asking, source.kubeconfig);
  // Without a name nobody can be asked; annotations, where they are sent, tell all the same.
  const { annotations } = asking;
  return annotations === undefined
    ? { kind: "skip", reason: "the runtime names no pod" }
    : judgeByAnnotations(asking, annotations);
}

type Source =
  | { readonly kind: "conf" }
  | { readonly kind: "annotations"; readonly annotations: Annotations }
  | { readonly kind: "api"; readonly kubeconfig: string };

function sourceOf({ settings, annotations }: Asking): Source {
  const { kubernetes, source: named } = settings.pods;
  if (named === undefined && kubernetes === undefined) return { kind: "conf" };
  const wanted = named ?? "auto";
  const kubeconfig = kubernetes?.kubeconfig ?? "";
  if (wanted !== "api" && annotations !== undefined) return { kind: "annotations", annotations };
  if (wanted !== "annotations" && kubeconfig !== "") return { kind: "api", kubeconfig };
  if (wanted === "auto" && kubernetes === undefined) return { kind: "conf" };
  const ways = {
    annotations: `the runtime sent no ${annotationsCapability} (set it in the entry's capabilities)`,
    api: "kubernetes.kubeconfig is not set",
  };
  throw new Fault("invalid-conf", "invalid conf: there is no way to know the pod", {
    details: wanted === "auto" ? `${ways.annotations}, and ${ways.api}` : ways[wanted],
  });
}

/** Namespaces that are left alone where nothing else is known of a pod, and nobody wrote a list. */
const usuallyExcluded: readonly string[] = ["kube-system"];

// Asked first: these never wait for the API, least of all the agent's own pod, which brings the token to ask it with.
function skipByName({ subject, settings }: Asking): string | undefined {
  const { namespace, name } = subject.pod;
  if (namespace === "") return undefined;
  const { excludedNamespaces: written = [], agent } = settings.pods;
  if (written.includes(namespace)) return `namespace ${namespace} is excluded`;
  const isAgent = agent?.namespace === namespace && name.startsWith(agent.namePrefix);
  return isAgent ? "the pod is the node agent's own" : undefined;
}

function judgeByAnnotations(asking: Asking, annotations: Annotations): Verdict {
  const { profile, pods } = asking.settings;
  const known: KnownPod = { annotations, spec: undefined };
  const reason = profile.skipReason(known);
  if (reason !== undefined) return { kind: "skip", reason };
  const words = () => {
    const apiServerPorts = isOfControlPlane(asking, known) ? pods.apiServerPorts : [];
    return Promise.resolve({ facts: { ...known, namespaceAnnotations: {} }, apiServerPorts });
  };
  return { kind: "pod", words };
}

// Where the runtime's annotations are all that is known, this is a guess, and told.
function isOfControlPlane({ settings, subject, log }: Asking, known: KnownPod): boolean {
  const { pod } = subject;
  const { controlPlaneNamespaces, apiServerPorts } = settings.pods;
  const isListed = controlPlaneNamespaces.includes(pod.namespace);
  const { isControlPlane, warning } = settings.profile.controlPlane(known, isListed);
  if (warning !== undefined) log.warn({ pod }, warning);
  if (isControlPlane && known.spec === undefined) {
    log.info(
      { pod, ports: portWords(apiServerPorts) },
      "taken for the mesh's control plane: the API server's ports are excluded",
    );
  }
  return isControlPlane;
}

async function judgeByApi(asking: Asking, kubeconfig: string): Promise<Verdict> {
  const asked = await ask(asking, kubeconfig);
  if ("reason" in asked) return { kind: "skip", ...asked };
  const { kube, found } = asked;
  const { profile } = asking.settings;
  requireSamePod(asking, found);
  const reason = profile.skipReason(found);
  if (reason !== undefined) return { kind: "skip", reason };
  const words = async () => {
    const namespaceAnnotations = profile.carriesAll(found.annotations)
      ? {}
      : await kube.namespaceAnnotations(asking.subject.pod.namespace);
    const apiServerPorts = isOfControlPlane(asking, found)
      ? await readApiServerPorts(asking, kube)
      : [];
    return { facts: { ...found, namespaceAnnotations }, apiServerPorts };
  };
  return { kind: "pod", words };
}

// A pod of a StatefulSet comes back under its name: what the API says of the new one is not about this sandbox.
function requireSamePod(asking: Asking, found: ApiPod): void {
  const wanted = asking.uid;
  if (wanted === "" || found.uid === wanted || found.isMirror) return;
  throw new Fault(
    "try-again",
    `${nameOf(asking.subject)} of the API server is another pod of that name: UID ${found.uid.slice(0, 64)}, not ${wanted.slice(0, 64)}`,
    { details: "the pod was replaced; the runtime tries again, or gives this sandbox up" },
  );
}

type Asked = { readonly kube: KubeReader; readonly found: ApiPod };

// While the API is away, pods that may be meshed do not start; others should.
async function ask(
  asking: Asking,
  kubeconfig: string,
): Promise<Asked | { readonly reason: string }> {
  const { deps, remainingMs } = asking;
  const { namespace, name } = asking.subject.pod;
  let kube: KubeReader | undefined;
  try {
    kube = await deps.openKube({ kubeconfig, clock: deps.clock, remainingMs });
    return { kube, found: await kube.pod(namespace, name) };
  } catch (error) {
    const isAnswer = kube !== undefined && !(error instanceof UnansweredError);
    const reason = isAnswer ? undefined : reasonUnasked(asking, kube);
    if (reason === undefined) throw error;
    asking.log.warn({ err: error }, reason);
    return { reason };
  }
}

// The runtime's annotations, where it sends them, tell as well as they do for a conf that goes by them.
function reasonUnasked(asking: Asking, kube: KubeReader | undefined): string | undefined {
  const { annotations, settings } = asking;
  const { namespace } = asking.subject.pod;
  if (annotations !== undefined) {
    const isUnmarked = settings.profile.skipReason({ annotations, spec: undefined }) !== undefined;
    return isUnmarked && kube !== undefined
      ? "the API server does not answer, and the runtime's annotations mark no proxy"
      : undefined;
  }
  const isUsual =
    settings.pods.excludedNamespaces === undefined && usuallyExcluded.includes(namespace);
  return isUsual ? `the API server does not answer, and the pod is in ${namespace}` : undefined;
}

// The control plane must come up also where it may not read services: the usual ports are a good guess.
async function readApiServerPorts(asking: Asking, kube: KubeReader): Promise<readonly PortRange[]> {
  try {
    return await kube.apiServerPorts();
  } catch (error) {
    asking.log.warn({ err: error }, "the API server's ports are taken from the conf");
    return asking.settings.pods.apiServerPorts;
  }
}
