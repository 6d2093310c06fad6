// Plays scenes on a stage and leaves the machine as it was: at the end, after a failure, and on Ctrl-C.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { execaSync } from "execa";
import { bin, cniPluginsDir, versions } from "../../build/setup/paths.mjs";
import { bridgeName, gateway } from "../lab/host.ts";
import { canMakeNetns } from "../lab/netns.ts";
import { plugin } from "../lab/plugin.ts";
import { makeNarrator, type Narrator } from "./narrator.ts";
import { leftovers, type Stage, setStage } from "./stage.ts";

export type Scene = readonly [
  title: string,
  play: (stage: Stage, narrator: Narrator) => Promise<void>,
];

/** Plays the scenes. Gives the process' exit status: 0 when every claim holds. */
export async function perform(scenes: readonly Scene[]): Promise<number> {
  const lacking = whatIsLacking();
  if (lacking !== "") {
    console.error(lacking);
    return 1;
  }
  const narrator = makeNarrator(process.stdout, (process.env["NO_COLOR"] ?? "") !== "");
  const interruption = listenForSignals();
  try {
    const stage = setStage();
    // Whatever ends the process, also an error that nobody foresaw.
    process.on("exit", stage.remove);
    introduce(stage, narrator);
    await playAll(scenes, stage, interruptible(narrator, interruption));
    await clear(stage, narrator);
  } catch (error) {
    narrator.broke(error);
  }
  return narrator.close(scenes.length, performance.now() / 1_000) ? 0 : 1;
}

function whatIsLacking(): string {
  if (!canMakeNetns()) return "The demo makes network namespaces: run it as root";
  const files = [join(bin, "cnitool"), join(cniPluginsDir, "bridge"), plugin];
  const missing = files.filter((file) => !existsSync(file));
  return missing.length === 0 ? "" : `${missing.join(", ")} missing: npm run setup, npm run build`;
}

// The first one lets the step that is under way end, and then the demo cleans up as ever; the second one does not wait.
function listenForSignals(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"]) {
    process.on(signal, () => {
      if (controller.signal.aborted) process.exit(1);
      controller.abort(new Error(`${signal}: stopped before the end`));
    });
  }
  process.stdout.on("error", () => process.exit(1));
  return controller.signal;
}

// Between any two steps something is told.
function interruptible(narrator: Narrator, interruption: AbortSignal): Narrator {
  const passing = <Args extends unknown[]>(tell: (...args: Args) => void) => {
    return (...args: Args) => {
      interruption.throwIfAborted();
      tell(...args);
    };
  };
  return {
    ...narrator,
    did: passing(narrator.did),
    claim: passing(narrator.claim),
    broke: (error) => narrator.broke(interruption.aborted ? interruption.reason : error),
  };
}

async function playAll(scenes: readonly Scene[], stage: Stage, narrator: Narrator): Promise<void> {
  try {
    for (const [title, play] of scenes) {
      narrator.scene(title);
      await play(stage, narrator);
    }
  } catch (error) {
    // A signal that ended a child of ours as well may not have been heard yet.
    await setTimeout(10);
    narrator.broke(error);
  }
}

async function clear(stage: Stage, narrator: Narrator): Promise<void> {
  try {
    await stage.stopPrograms();
  } catch (error) {
    narrator.broke(error);
  }
  stage.remove();
  const left = leftovers(stage.host);
  const claim = "the machine is as it was: no netns, link, process or file of the demo";
  narrator.claim(claim, left.length === 0, left);
}

function introduce({ host }: Stage, narrator: Narrator): void {
  const haproxy = /version ([\d.]+)/.exec(execaSync("haproxy", ["-v"]).stdout)?.[1];
  narrator.heading(
    "Sluice: a pod's traffic through its proxy, verified, repaired, and taken back",
    [
      ["node", `netns ${host.netns.name}, bridge ${bridgeName} ${gateway}`],
      ["tools", `cnitool ${versions.cnitool}, bridge ${versions.cniPlugins}, HAProxy ${haproxy}`],
      ["list", "bridge, then sluice; cniVersion 1.1.0"],
    ],
  );
}
