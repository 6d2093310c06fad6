// Work on the world's attachment by nobody's CNI call: no request, no conf of a network.
import { readSettings } from "../../src/conf/reader.ts";
import type { Plan } from "../../src/upkeep/families.ts";
import type { Subject, Task } from "../../src/upkeep/task.ts";
import { linkerd } from "../lab/states.ts";
import { netnsPath, type World } from "./world.ts";

/** The attachment eth0 of the pod emoji/web. */
export const subject: Subject = {
  key: { network: "net", containerId: "c0ffee", ifName: "eth0" },
  pod: { namespace: "emoji", name: "web" },
  netns: { path: netnsPath, allowOwn: false },
};

/** What the conf of the states says, with changes; and what it plans for a pod that has these families. */
export function settingsWith(change: Readonly<Record<string, unknown>> = {}) {
  const { backend, families, profile, mesh } = readSettings({
    linkerd: { ...linkerd, "iptables-mode": "nft", ...change },
  });
  const { intentOf } = mesh;
  if (intentOf === undefined) throw new Error(mesh.problems.join("; "));
  const plan: Plan = { intent: intentOf(families).intent, required: families };
  return { settings: { backend, families, profile }, plan };
}

/** A task in the world, as long as the world's clock says. */
export function taskIn(world: World, settings: Task["settings"]): Task {
  const { deps, store, memory } = world;
  const log = deps.openLog({ level: "debug", file: "" });
  return { deps, store, memory, log, remainingMs: () => 20_000 - world.time.ms, settings };
}
