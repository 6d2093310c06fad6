// What the commands need of the world outside, made in the entries and passed down. No module keeps state of its own.

import type { Store } from "./attachment/store.ts";
import type { Clock } from "./clock.ts";
import type { KubeSettings } from "./kube/client.ts";
import type { KubeReader } from "./kube/reader.ts";
import type { Logger, LogSettings } from "./log.ts";
import type { Host } from "./netns/host.ts";
import type { Netns, Opening } from "./netns/path.ts";
import type { Memory } from "./node/memory.ts";

export type Deps = Host & {
  readonly clock: Clock;
  readonly openNetns: (opening: Opening) => Netns;
  readonly closeNetns: (netns: Netns) => void;
  readonly openStore: (stateDir: string) => Store;
  readonly openMemory: (stateDir: string) => Memory;
  /** Loads the API client, and nothing of it before. */
  readonly openKube: (settings: KubeSettings) => Promise<KubeReader>;
  readonly openLog: (settings: LogSettings) => Logger;
};
