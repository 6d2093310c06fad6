// One command under way: the task that it is, and what the runtime said.
import { type PodName, parseArgs, podName, podUid } from "../cni/args.ts";
import { annotationsIn } from "../cni/capability.ts";
import type { NetworkConf } from "../cni/conf.ts";
import type { Request } from "../cni/request.ts";
import type { Settings } from "../conf/settings.ts";
import type { Backend, Family } from "../netfilter/table.ts";
import type { Asking } from "../upkeep/pod/asking.ts";
import type { Subject, Task } from "../upkeep/task.ts";

export type Call = Omit<Task, "settings"> & {
  readonly request: Request;
  readonly network: NetworkConf;
  readonly settings: Settings;
  /** Whom it is about; for GC and STATUS, which are about no attachment, its parts are empty. */
  readonly subject: Subject;
};

/** What a flow tells the one info line of its command. */
export type Told = {
  /** The families that are redirected, or were to be. */
  families?: readonly Family[];
  backend?: Backend;
  /** Those that were written to. */
  changed?: readonly Family[];
  /** Why the pod was left alone. */
  skipped?: string;
  /** How many records went. */
  removed?: number;
  /** The same was said before. */
  repeated?: true;
};

/** The pod of a request. */
export function podOf(request: Request): PodName {
  return podName(parseArgs(request.args));
}

/** Whom a request is about. */
export function subjectOf(request: Request, network: NetworkConf): Subject {
  const { containerId, ifName, netns, netnsOverride } = request;
  return {
    key: { network: network.name, containerId, ifName },
    pod: podOf(request),
    netns: { path: netns, allowOwn: netnsOverride },
  };
}

/** What the runtime tells of the pod: with it the mesh profile decides, or asks the API. */
export function askingOf(call: Call): Asking {
  const uid = podUid(parseArgs(call.request.args));
  return { ...call, uid, annotations: annotationsIn(call.network.document) };
}
