// What the commands need of the world outside, made in the entries and passed down. No module keeps state of its own.
import type { Store } from "./attachment/store.ts";
import type { Logger, LogSettings } from "./log.ts";
import type { FindProgram } from "./netfilter/tools.ts";
import type { Exec } from "./netns/exec.ts";
import type { Netns } from "./netns/path.ts";

export type Clock = {
  /** Milliseconds that only go forward. */
  readonly monotonicMs: () => number;
  /** The time of day, in milliseconds of the epoch. */
  readonly epochMs: () => number;
  readonly sleep: (ms: number) => Promise<void>;
};

export type Deps = {
  readonly exec: Exec;
  readonly clock: Clock;
  readonly find: FindProgram;
  /** The children's PATH. */
  readonly path: string;
  readonly openNetns: (path: string, allowOwn: boolean) => Netns;
  readonly closeNetns: (netns: Netns) => void;
  readonly openStore: (stateDir: string) => Store;
  readonly openLog: (settings: LogSettings) => Logger;
};
