// From the conf's intent to the pod's: what annotations say about the redirect. Pod, then namespace, then conf. Strict as
// the conf: what cannot be read is an error with annotation and entry, or a warning if so wished.

import { mergeCidrs, readCidr } from "../../redirect/cidr.ts";
import { type Read, readAs, type Unreadable } from "../../redirect/list.ts";
import { readGroup, readUser } from "../../redirect/owner.ts";
import { mergePorts, type PortRange, portWords, readPort, readPorts } from "../../redirect/port.ts";
import type { PodFacts } from "../pod.ts";
import type { AnnotationPolicy, Planned } from "../profile.ts";
import { type Reader, readMany, readOne } from "./annotation-reader.ts";
import { readSeconds } from "./duration.ts";
import type { Intent } from "./intent.ts";
import { configPrefix } from "./names.ts";
import { nearMisses } from "./near-miss.ts";
import { proxyOf } from "./pod.ts";

/** A pod's intent in Linkerd's words, and what there is to say of its annotations. */
export type Annotated = Pick<Planned, "refusals" | "notes"> & { readonly intent: Intent };

/** The pod's intent: the conf's, with what the pod says. */
export function applyAnnotations(
  intent: Intent,
  pod: PodFacts,
  { denied, dropEntries, apiServerPorts }: AnnotationPolicy,
): Annotated {
  const reader: Reader = { pod, denied, dropEntries, refusals: [], notes: [] };
  const annotated = readIntent(intent, reader);
  const uid = proxyUid(annotated, reader);
  return {
    intent: {
      ...annotated,
      proxyUid: uid,
      excludeOutbound: mergePorts([...annotated.excludeOutbound, ...apiServerPorts]),
    },
    refusals: reader.refusals,
    notes: [...reader.notes, ...nearMisses({ ...pod.namespaceAnnotations, ...pod.annotations })],
  };
}

function readIntent(intent: Intent, reader: Reader): Intent {
  const { proxyGid: confGid, closeWaitSeconds: confSeconds, ...others } = intent;
  const gid = readOne(reader, "proxy-gid", groupOf) ?? confGid ?? "none";
  const seconds = readOne(reader, "close-wait-timeout", secondsOf) ?? confSeconds ?? 0;
  const adminPorts = (["admin-port", "control-port"] as const).flatMap((key) => {
    const port = readOne(reader, key, readPort);
    return port === undefined ? [] : [{ from: port, to: port }];
  });
  return {
    ...others,
    inboundPort: readOne(reader, "inbound-port", readPort) ?? intent.inboundPort,
    outboundPort: readOne(reader, "outbound-port", readPort) ?? intent.outboundPort,
    ...(gid === "none" ? {} : { proxyGid: gid }),
    ...(seconds === 0 ? {} : { closeWaitSeconds: seconds }),
    // Added, not put in the place of: the proxy's own ports are in the conf's list (linkerd2#13976).
    excludeInbound: mergePorts([
      ...intent.excludeInbound,
      ...adminPorts,
      ...(readMany(reader, "skip-inbound-ports", readPorts) ?? []),
    ]),
    excludeOutbound: outboundPorts(intent, reader),
    excludeSubnets: subnets(intent, reader),
  };
}

// In the place of the conf's list, as linkerd-cni does; users are surprised, so it is said (linkerd/website#942).
function outboundPorts(intent: Intent, reader: Reader): readonly PortRange[] {
  const ports = readMany(reader, "skip-outbound-ports", readPorts);
  if (ports === undefined) return intent.excludeOutbound;
  if (intent.excludeOutbound.length > 0) {
    const replaced = portWords(intent.excludeOutbound).join(",");
    reader.notes.push(
      `${configPrefix}skip-outbound-ports replaces the conf's outbound ports ${replaced}`,
    );
  }
  return mergePorts(ports);
}

function subnets(intent: Intent, reader: Reader): Intent["excludeSubnets"] {
  const found = readMany(reader, "skip-subnets", readCidr);
  return found === undefined ? intent.excludeSubnets : mergeCidrs(found);
}

// What the proxy really runs as is what its packets carry; an annotation or a conf that says otherwise would make it
// redirect itself (linkerd2#2812).
function proxyUid(intent: Intent, reader: Reader): number {
  const { notes, refusals, pod } = reader;
  const named = readOne(reader, "proxy-uid", userOf) ?? intent.proxyUid;
  const runAsUser = pod.spec === undefined ? undefined : proxyOf(pod.spec)?.runAsUser;
  if (runAsUser === undefined || runAsUser === named) return named;
  if (readUser(runAsUser) === undefined) {
    const root = "0 (root) cannot be exempted: other containers run as root too";
    refusals.push({
      annotation: "securityContext.runAsUser of the proxy",
      problem: runAsUser === 0 ? root : `${runAsUser} ${notAnId}`,
    });
    return named;
  }
  notes.push(`the proxy runs as uid ${runAsUser}, not ${named}: ${runAsUser} is exempted`);
  return runAsUser;
}

const notAnId = "is not an id (1 to 4294967294)";
const notADuration = "is not a duration of a second or more (like 30s or 1h)";

function userOf(text: string): Read<number> | Unreadable {
  return readAs(text, readUser(text), notAnId);
}

function groupOf(text: string): Read<number | "none"> | Unreadable {
  return readAs(text, readGroup(text), notAnId);
}

function secondsOf(text: string): Read<number> | Unreadable {
  return readAs(text, readSeconds(text), notADuration);
}
