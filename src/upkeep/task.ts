// What work on attachments needs, and which attachment it is about. A CNI command or another process may ask for the work.
import type { AttachmentKey } from "../attachment/record.ts";
import type { Store } from "../attachment/store.ts";
import { isNamed, type PodName } from "../cni/args.ts";
import type { Settings } from "../conf/settings.ts";
import type { Deps } from "../deps.ts";
import type { Logger } from "../log.ts";
import type { Session } from "../netfilter/converge/left-out.ts";
import { makeClient } from "../netfilter/iptables/client.ts";
import type { BackendChoice } from "../netfilter/iptables/tools.ts";
import type { Looking } from "../netns/host.ts";
import type { Netns, Opening } from "../netns/path.ts";
import type { Memory } from "../node/memory.ts";

/** A piece of work under way. */
export type Task = {
  readonly deps: Deps;
  readonly store: Store;
  /** What is known of the node. */
  readonly memory: Memory;
  readonly log: Logger;
  /** Milliseconds until the work must be over. */
  readonly remainingMs: () => number;
  /** What the conf says of all attachments: how their backend is chosen, which families, which mesh. */
  readonly settings: Pick<Settings, "backend" | "families" | "profile">;
};

/** An attachment: by what it is known, whose it is, and where its netns is. */
export type Subject = {
  readonly key: AttachmentKey;
  /** Empty names where the runtime tells none. */
  readonly pod: PodName;
  readonly netns: Opening;
};

/** The same while its netns is held open. */
export type Entered = Omit<Subject, "netns"> & { readonly netns: Netns };

/** How messages name it: the pod, or the container where the runtime names no pod. */
export function nameOf({ pod, key }: Pick<Subject, "pod" | "key">): string {
  if (isNamed(pod)) return `pod ${pod.namespace}/${pod.name}`;
  const id = key.containerId;
  return `container ${/^[0-9a-f]{64}$/.test(id) ? id.slice(0, 12) : id}`;
}

/** A session for work in a netns through a backend. */
export function sessionOf(task: Task, netns: Netns, choice: BackendChoice): Session {
  return {
    client: makeClient(task.deps),
    place: netns,
    choice,
    remainingMs: task.remainingMs,
    sleep: task.deps.clock.sleep,
  };
}

/** What a single look into a netns needs. */
export function lookingOf({ deps, remainingMs }: Task): Looking {
  return { host: deps, timeoutMs: remainingMs() };
}
