// One command under way: the request, the conf, and the world, as each flow needs them.
import type { AttachmentKey } from "../attachment/record.ts";
import type { Store } from "../attachment/store.ts";
import { isNamed, type PodName, parseArgs, podName } from "../cni/args.ts";
import type { NetworkConf } from "../cni/conf.ts";
import type { Request } from "../cni/request.ts";
import type { Settings } from "../conf/settings.ts";
import type { Deps } from "../deps.ts";
import type { Logger } from "../log.ts";
import type { Session } from "../netfilter/converge/left-out.ts";
import { makeClient } from "../netfilter/iptables/client.ts";
import type { BackendChoice } from "../netfilter/iptables/tools.ts";
import type { Looking } from "../netns/host.ts";
import type { Netns } from "../netns/path.ts";

export type Call = {
  readonly request: Request;
  readonly network: NetworkConf;
  readonly settings: Settings;
  readonly pod: PodName;
  readonly deps: Deps;
  readonly store: Store;
  readonly log: Logger;
  /** Milliseconds until this command must be over: runtimes kill what takes longer, and with less grace. */
  readonly remainingMs: () => number;
};

/** What a flow tells the one info line of its command. */
export type Told = Record<string, unknown>;

/** The pod of a request. */
export function podOf(request: Request): PodName {
  return podName(parseArgs(request.args));
}

/** The attachment that the call is about. */
export function keyOf({ request, network }: Call): AttachmentKey {
  return { network: network.name, containerId: request.containerId, ifName: request.ifName };
}

/** How messages name what the call is about: the pod, or the container where the runtime names no pod. */
export function subjectOf({ pod, request }: Call): string {
  if (isNamed(pod)) return `pod ${pod.namespace}/${pod.name}`;
  const id = request.containerId;
  return `container ${/^[0-9a-f]{64}$/.test(id) ? id.slice(0, 12) : id}`;
}

/** A session for work in a netns through a backend. */
export function sessionOf(call: Call, netns: Netns, choice: BackendChoice): Session {
  return {
    client: makeClient(call.deps),
    place: netns,
    choice,
    remainingMs: call.remainingMs,
    sleep: call.deps.clock.sleep,
  };
}

/** What a single look into a netns needs. */
export function lookingOf(call: Call): Looking {
  return { host: call.deps, timeoutMs: call.remainingMs() };
}
