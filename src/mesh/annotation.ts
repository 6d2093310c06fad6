// From the conf's intent to the pod's: what annotations say about the redirect. Pod, then namespace, then conf; an empty
// value is not set. Strict as the conf: what cannot be read is an error with annotation and entry, or a warning if so wished.

import { type Cidr, mergeCidrs, parseCidr } from "../redirect/cidr.ts";
import type { Intent } from "../redirect/intent.ts";
import { mergePorts, type PortRange, parsePort, parsePorts } from "../redirect/port.ts";
import { type ConfigKey, configKeys, configPrefix } from "./linkerd.ts";
import { type Annotations, type PodFacts, proxyOf } from "./pod.ts";

/** What the node's owner lets pods say. */
export type AnnotationPolicy = {
  /** Keys (without prefix) that pods of this namespace may not set. */
  readonly denied: readonly string[];
  /** Ports of the API server, which the mesh's own control plane reaches without its proxy. */
  readonly apiServerPorts: readonly PortRange[];
};

/** One annotation that cannot be honoured. */
export type Refusal = { readonly annotation: string; readonly problem: string };

export type Annotated = {
  readonly intent: Intent;
  /** Annotations that cannot be honoured; the intent is as without them. */
  readonly refusals: readonly Refusal[];
  /** Sentences for the log. */
  readonly notes: readonly string[];
};

/** The pod's intent. */
export function applyAnnotations(
  intent: Intent,
  pod: PodFacts,
  policy: AnnotationPolicy,
): Annotated {
  const reader = makeReader(pod, policy);
  const annotated = readIntent(intent, reader);
  const outbound = pod.isControlPlane ? policy.apiServerPorts : [];
  const uid = proxyUid(annotated, pod, reader);
  return {
    intent: {
      ...annotated,
      proxyUid: uid,
      excludeOutbound: mergePorts([...annotated.excludeOutbound, ...outbound]),
    },
    refusals: reader.refusals,
    notes: [...reader.notes, ...nearMisses({ ...pod.namespaceAnnotations, ...pod.annotations })],
  };
}

type Reader = {
  readonly refusals: Refusal[];
  readonly notes: string[];
  /** The value of an annotation, read; undefined when it is not set, denied, or cannot be read. */
  readonly read: <T>(key: ConfigKey, parse: (text: string) => T) => T | undefined;
};

function makeReader(pod: PodFacts, policy: AnnotationPolicy): Reader {
  const refusals: Refusal[] = [];
  const read = <T>(key: ConfigKey, parse: (text: string) => T): T | undefined => {
    const { annotation, text } = find(pod, configPrefix + key);
    if (text === "") return undefined;
    try {
      if (policy.denied.includes(key)) throw new RangeError("is not allowed in this namespace");
      return parse(text);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      refusals.push({ annotation, problem: printable(error.message) });
      return undefined;
    }
  };
  return { refusals, notes: [], read };
}

// The pod's own value, else the namespace's, with how to name it to whom it may concern.
function find(pod: PodFacts, key: string): { annotation: string; text: string } {
  const own = pod.annotations[key] ?? "";
  if (own !== "") return { annotation: key, text: own };
  return { annotation: `${key} of the namespace`, text: pod.namespaceAnnotations[key] ?? "" };
}

// A problem quotes what a user wrote, of any length and in any script, and goes into logs and events: characters that
// could pass for others, or turn the line around, are spelt out, and of a long entry the middle is left out.
function printable(problem: string): string {
  const ascii = problem.replaceAll(/[^\x20-\x7e]/g, (char) => {
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
  return ascii.length <= 300 ? ascii : `${ascii.slice(0, 150)} ... ${ascii.slice(-100)}`;
}

function readIntent(intent: Intent, reader: Reader): Intent {
  const { read } = reader;
  const gid = read("proxy-gid", parseId);
  const closeWaitSeconds = read("close-wait-timeout", parseSeconds);
  const adminPorts = (["admin-port", "control-port"] as const).flatMap((key) => {
    const port = read(key, parsePort);
    return port === undefined ? [] : [{ from: port, to: port }];
  });
  return {
    ...intent,
    inboundPort: read("inbound-port", parsePort) ?? intent.inboundPort,
    outboundPort: read("outbound-port", parsePort) ?? intent.outboundPort,
    ...(gid === undefined ? {} : { proxyGid: gid }),
    ...(closeWaitSeconds === undefined ? {} : { closeWaitSeconds }),
    // Added, not put in the place of: the proxy's own ports are in the conf's list (linkerd2#13976).
    excludeInbound: mergePorts([
      ...intent.excludeInbound,
      ...adminPorts,
      ...(read("skip-inbound-ports", parsePorts) ?? []),
    ]),
    excludeOutbound: outboundPorts(intent, reader),
    excludeSubnets: read("skip-subnets", parseCidrs) ?? intent.excludeSubnets,
  };
}

// In the place of the conf's list, as linkerd-cni does; users are surprised, so it is said (linkerd/website#942).
function outboundPorts(intent: Intent, { read, notes }: Reader): readonly PortRange[] {
  const ports = read("skip-outbound-ports", parsePorts);
  if (ports === undefined) return intent.excludeOutbound;
  if (intent.excludeOutbound.length > 0) {
    const replaced = intent.excludeOutbound.map(({ from, to }) =>
      from === to ? from : `${from}-${to}`,
    );
    notes.push(
      `${configPrefix}skip-outbound-ports replaces the conf's outbound ports ${replaced.join(",")}`,
    );
  }
  return mergePorts(ports);
}

// What the proxy really runs as is what its packets carry; an annotation or a conf that says otherwise would make it
// redirect itself (linkerd2#2812).
function proxyUid(intent: Intent, pod: PodFacts, { read, notes, refusals }: Reader): number {
  const named = read("proxy-uid", parseId) ?? intent.proxyUid;
  const runAsUser = pod.spec === undefined ? undefined : proxyOf(pod.spec)?.runAsUser;
  if (runAsUser === undefined || runAsUser === named) return named;
  if (!isId(runAsUser)) {
    const root = "0 (root) cannot be exempted: other containers run as root too";
    refusals.push({
      annotation: "securityContext.runAsUser of the proxy",
      problem: runAsUser === 0 ? root : `${runAsUser} is not an id (1 to 4294967294)`,
    });
    return named;
  }
  notes.push(`the proxy runs as uid ${runAsUser}, not ${named}: ${runAsUser} is exempted`);
  return runAsUser;
}

function parseId(text: string): number {
  const id = /^[0-9]{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (isId(id)) return id;
  throw new RangeError(`${JSON.stringify(text)} is not an id (1 to 4294967294)`);
}

function isId(id: number): boolean {
  return Number.isInteger(id) && id >= 1 && id <= 4_294_967_294;
}

function parseCidrs(text: string): Cidr[] {
  return mergeCidrs(text.split(",").map(parseCidr));
}

const unitSeconds: ReadonlyMap<string, number> = new Map([
  ["h", 3600],
  ["m", 60],
  ["s", 1],
  ["ms", 0.001],
]);

// A Go duration, of which the injector takes the whole seconds; the kernel knows no others.
function parseSeconds(text: string): number {
  const part = /([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|h|m|s)/g;
  const parts = text.replaceAll(part, "") === "" ? [...text.matchAll(part)] : [];
  const spans = parts.map(([, n, unit = ""]) => Number(n) * (unitSeconds.get(unit) ?? 0));
  // A little more, for what binary fractions lack.
  const seconds = Math.floor(spans.reduce((sum, span) => sum + span, 1e-6));
  if (seconds >= 1 && seconds <= 2_147_483) return seconds;
  throw new RangeError(
    `${JSON.stringify(text)} is not a duration of a second or more (like 30s or 1h)`,
  );
}

/** So many are told of: annotations are many where somebody wants the log full. */
const mostNearMisses = 10;

/** Keys that look like ours and are not: silently ignored ones have cost people days (linkerd2#5873, #8100). */
function nearMisses(annotations: Annotations): string[] {
  const notes = Object.keys(annotations).flatMap((key) => {
    const meant = meantKey(key);
    return meant === undefined ? [] : [`annotation ${key} is not known; ${meant} is`];
  });
  return notes.slice(0, mostNearMisses);
}

function meantKey(key: string): string | undefined {
  if (key.length > 80) return undefined;
  const [, prefix, name = ""] = /^([a-z.-]*linkerd[a-z.-]*\/)([A-Za-z_-]{3,40})$/.exec(key) ?? [];
  if (prefix === configPrefix && configKeys.some((known) => known === name)) return undefined;
  const spelt = name.toLowerCase().replaceAll("_", "-");
  const meant = configKeys.find((known) => isNear(known, spelt));
  return meant === undefined ? undefined : configPrefix + meant;
}

// Equal but for one letter too many, too few, wrong, or two swapped.
function isNear(a: string, b: string): boolean {
  const at = [...a].findIndex((char, i) => char !== b[i]);
  if (at === -1) return b.length - a.length <= 1;
  const [restA, restB] = [a.slice(at), b.slice(at)];
  return (
    restA.slice(1) === restB ||
    restA === restB.slice(1) ||
    restA.slice(1) === restB.slice(1) ||
    `${restA[1]}${restA[0]}${restA.slice(2)}` === restB
  );
}
