// What is needed to look into the node, for a command or for another process.
import type { Clock } from "../clock.ts";
import type { Settings } from "../conf/settings.ts";
import type { Logger } from "../log.ts";
import type { Host } from "../netns/host.ts";
import type { Memory } from "./memory.ts";

export type Means = {
  readonly deps: Host & { readonly clock: Clock };
  /** Where it is kept what was found out. */
  readonly memory: Memory;
  readonly log: Logger;
  /** Milliseconds until the work must be over. */
  readonly remainingMs: () => number;
  /** How the backend is chosen, and the mesh whose rules are tried. */
  readonly settings: Pick<Settings, "backend" | "profile">;
};
