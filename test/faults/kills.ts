// SIGKILL at a random moment of ADD: whatever was hit, each table then holds all of what it held before or all of what ADD
// was to make of it, and the next ADD ends complete.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { Backend } from "../../src/netfilter/table.ts";
import { makeNetns } from "../lab/netns.ts";
import { plugin } from "../lab/plugin.ts";
import type { StateName } from "../lab/states.ts";
import { call, confOf, environmentOf, type Subject } from "./call.ts";
import { hasChild, killGroup, markedWith } from "./processes.ts";
import { everyTable, load, nameOf, ours, readAll, type Tables } from "./tables.ts";

/** What a netns is in before the ADD that is killed: the state of the backend that ADD writes to, and of the other. */
export type Start = { readonly here: StateName; readonly there: StateName };

const nothing: StateName = "nothing in it";

export const starts: readonly Start[] = [
  { here: nothing, there: nothing },
  { here: "the outbound jump missing", there: nothing },
  { here: "foreign rules between doubled jumps", there: nothing },
  { here: "linkerd-init's rules, interrupted", there: nothing },
  { here: nothing, there: "linkerd-init's rules, complete" },
];

/** Who is killed: the plugin's process group, its children's as well, or theirs alone. */
const victims = ["plugin", "plugin and children", "children"] as const;

/** What was found: how many kills hit the table before, after, or in between families; and all that is wrong. */
export type Findings = {
  readonly kills: number;
  /** By what the tables held after the kill: the old rulesets, the new ones, or one family of each. */
  readonly held: Readonly<Record<"old" | "new" | "one of each", number>>;
  /** ADDs that had ended before the kill came. */
  readonly late: number;
  readonly faults: readonly string[];
};

export type KillOptions = {
  readonly kills: number;
  readonly atOnce: number;
  /** A shell script in the place of all restore programs. */
  readonly restore?: string;
};

/** Kills ADDs, several at once, going through starts, backends and victims in turn. */
export async function killAdds({ kills, atOnce, restore }: KillOptions): Promise<Findings> {
  const trials = Array.from({ length: kills }, (_, number) => trialOf(number));
  const open = (backend: Backend) => makeLab(backend, restore);
  const timing = await measure(atOnce, open);
  const found: Judged[] = [];
  const worker = async () => {
    for (let trial = trials.pop(); trial !== undefined; trial = trials.pop()) {
      found.push(await killOne(open(trial.backend), trial, timing));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  const count = (held: Judged["held"]) => found.filter((one) => one.held === held).length;
  return {
    kills: found.length,
    held: { old: count("old"), new: count("new"), "one of each": count("one of each") },
    late: found.filter(({ late }) => late).length,
    faults: found.flatMap(({ faults }) => faults),
  };
}

type Trial = {
  readonly start: Start;
  readonly backend: Backend;
  readonly victim: (typeof victims)[number];
  /** The delay begins with the first tool, not with ADD. */
  readonly aimed: boolean;
};

// Each number another combination, until all have been: so many of each, however many there are.
function trialOf(number: number): Trial {
  const pick = <T>(list: readonly T[], at: number) => list[at % list.length] ?? fail();
  const round = Math.floor(number / starts.length);
  return {
    start: pick(starts, number),
    backend: round % 2 === 0 ? "nft" : "legacy",
    victim: pick(victims, Math.floor(round / 2)),
    aimed: number % 2 === 0,
  };
}

function fail(): never {
  throw new Error("an empty list");
}

/** How long an ADD takes, and its part in which tools run, in milliseconds: as far as a kill may be put off. */
type Timing = { wholeMs: number; toolsMs: number };

async function measure(atOnce: number, open: (backend: Backend) => Lab): Promise<Timing> {
  const one = async () => {
    const lab = open("nft");
    try {
      const began = performance.now();
      const { stderr } = await call("ADD", lab);
      const toolsMs = Number(/"durationMs":([\d.]+)/.exec(stderr)?.[1]);
      return { wholeMs: performance.now() - began, toolsMs };
    } finally {
      lab.remove();
    }
  };
  await one();
  const all = await Promise.all(Array.from({ length: atOnce }, one));
  // The quickest: a kill that comes late hits nothing.
  return {
    wholeMs: Math.min(...all.map(({ wholeMs }) => wholeMs)),
    toolsMs: Math.min(...all.map(({ toolsMs }) => toolsMs)),
  };
}

type Judged = {
  readonly held: keyof Findings["held"];
  readonly late: boolean;
  readonly faults: readonly string[];
};

async function killOne(lab: Lab, trial: Trial, timing: Timing): Promise<Judged> {
  const { start, backend, aimed } = trial;
  const reach = aimed ? "toolsMs" : "wholeMs";
  try {
    const [here, there] = [true, false].map((isHere) =>
      everyTable.filter((table) => (table.backend === backend) === isHere),
    );
    await load(lab.netns, here ?? [], start.here);
    await load(lab.netns, there ?? [], start.there);
    const before = await readAll(lab.netns);
    const delayMs = Math.random() * timing[reach];
    const late = await addAndKill(lab, trial, delayMs);
    // How fast the machine is changes: one in five comes late, and so the end is reached as well.
    timing[reach] *= late ? 0.93 : 1.02;
    const after = await readAll(lab.netns);
    const { held, faults } = judge(backend, before, after);
    const where = `${backend}, from "${start.here}", "${start.there}", ${trial.victim} killed ${delayMs.toFixed(1)} ms after the start of ${aimed ? "its tools" : "ADD"}`;
    const all = [...faults, ...(await judgeNext(lab, before))];
    return { held, late, faults: all.map((fault) => `${where}: ${fault}`) };
  } finally {
    lab.remove();
  }
}

/** Starts ADD, kills after the delay, and waits until all that ADD started has ended. True when it had ended before. */
async function addAndKill(lab: Lab, { victim, aimed }: Trial, delayMs: number): Promise<boolean> {
  const child = spawn(plugin, [], {
    env: environmentOf("ADD", lab),
    // A process group of its own, as a runtime that ends a plugin with all of its kind would have it.
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  const ended = once(child, "exit");
  // A plugin that is killed early does not read.
  child.stdin.on("error", () => undefined).end(confOf(lab));
  if (aimed) while (child.exitCode === null && !hasChild(child.pid)) await sleep(1);
  await Promise.race([sleep(delayMs), ended]);
  const late = child.exitCode !== null;
  const started = markedWith(lab.mark).filter(({ pid }) => pid !== child.pid);
  if (victim !== "children" && child.pid !== undefined) killGroup(child.pid);
  if (victim !== "plugin") for (const { group } of started) killGroup(group);
  await ended;
  while (markedWith(lab.mark).length > 0) await sleep(20);
  return late;
}

/** Half states, and what else must not be. */
function judge(backend: Backend, before: Tables, after: Tables): Omit<Judged, "late"> {
  const here = everyTable.filter((table) => table.backend === backend).map(nameOf);
  const isNew = here.map((name) => isDeepStrictEqual(after.get(name)?.own, ours));
  const isChanged = here.map(
    (name) => !isDeepStrictEqual(after.get(name)?.own, before.get(name)?.own),
  );
  const half = here.filter((_, i) => isChanged[i] === true && isNew[i] === false);
  const strange = everyTable.map(nameOf).filter((name) => {
    return !isDeepStrictEqual(after.get(name)?.foreign, before.get(name)?.foreign);
  });
  const there = everyTable.filter((table) => table.backend !== backend).map(nameOf);
  const taken = there.filter((name, i) => {
    const [old, now] = [before.get(name)?.own ?? [], after.get(name)?.own ?? []];
    const isGone = now.length === 0 && isNew[i] === true;
    return !isDeepStrictEqual(now, old) && !isGone;
  });
  const faults = [
    ...half.map((name) => `${name} is neither old nor new: ${after.get(name)?.own.join(" | ")}`),
    ...strange.map((name) => `foreign rules in ${name} were touched`),
    ...taken.map((name) => `${name} was taken away before the other backend had its rules`),
  ];
  return { held: heldBy(isNew), faults };
}

function heldBy(isNew: readonly boolean[]): Judged["held"] {
  if (isNew.every((yes) => yes)) return "new";
  return isNew.some((yes) => yes) ? "one of each" : "old";
}

async function judgeNext(lab: Lab, before: Tables): Promise<string[]> {
  const add = await call("ADD", lab);
  const check = await call("CHECK", lab);
  const after = await readAll(lab.netns);
  const wrong = everyTable.filter((table) => {
    const expected = table.backend === lab.backend ? ours : [];
    const { own, foreign } = after.get(nameOf(table)) ?? { own: undefined, foreign: undefined };
    const kept = isDeepStrictEqual(foreign, before.get(nameOf(table))?.foreign);
    return !isDeepStrictEqual(own, expected) || !kept;
  });
  return [
    ...(add.exitCode === 0 ? [] : [`the next ADD failed: ${add.stdout}`]),
    ...(check.stdout === "" ? [] : [`CHECK after the next ADD said: ${check.stdout}`]),
    ...wrong.map((table) => `${nameOf(table)} is not as it should be after the next ADD`),
  ];
}

type Lab = Subject & { readonly mark: string; readonly remove: () => void };

function makeLab(backend: Backend, restore?: string): Lab {
  const netns = makeNetns("kill");
  const stateDir = mkdtempSync(join(tmpdir(), "slc-kill-"));
  const remove = () => {
    netns.remove();
    rmSync(stateDir, { recursive: true, force: true });
  };
  const mark = join(stateDir, "bin");
  if (restore !== undefined) {
    mkdirSync(mark);
    for (const name of ["iptables", "ip6tables"]) {
      writeFileSync(join(mark, `${name}-${backend}-restore`), restore, { mode: 0o755 });
    }
  }
  return { netns, backend, stateDir, mark, remove };
}
