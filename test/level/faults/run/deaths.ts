// SIGKILL at a random moment of DEL: each table then holds all of our rules or none; while any are left so is the record,
// CHECK does not call what is left complete, and the next DEL leaves nothing.
import { isDeepStrictEqual } from "node:util";
import { type Backend, backends } from "../../../../src/netfilter/table.ts";
import type { StateName } from "../../../lab/states.ts";
import { call } from "./call.ts";
import {
  callAndKill,
  inParallel,
  type Kill,
  measure,
  pick,
  type Timing,
  victims,
} from "./killing.ts";
import { type Lab, leftByDel, makeLab, recordsOf } from "./lab.ts";
import { everyTable, load, nameOf, ours, readAll, type Tables } from "./tables.ts";

export type DeathFindings = {
  readonly kills: number;
  /** By what the tables held after the kill: all of our rules, none, or those of one family. */
  readonly held: Readonly<Record<"all" | "none" | "one family", number>>;
  /** DELs that had ended before the kill came. */
  readonly late: number;
  readonly faults: readonly string[];
};

export type DeathOptions = {
  readonly kills: number;
  readonly atOnce: number;
  /** A shell script in the place of all restore programs. */
  readonly restore?: string;
};

/** What stands in the netns before the ADD whose DEL is killed. */
const starts: readonly StateName[] = ["nothing in it", "foreign rules only"];

/** Kills DELs, several at once, going through starts, backends and victims in turn. */
export async function killDels({ kills, atOnce, restore }: DeathOptions): Promise<DeathFindings> {
  const open = ({ backend, start }: Pick<Trial, "backend" | "start">) =>
    redirected(makeLab(backend, restore), start);
  const first = { backend: "nft", start: "nothing in it" } as const;
  const timing = await measure("DEL", () => open(first), atOnce);
  const trials = Array.from({ length: kills }, (_, number) => trialOf(number));
  const found = await inParallel(trials, atOnce, async (trial) => {
    return await killOne(await open(trial), trial, timing);
  });
  const count = (held: Judged["held"]) => found.filter((one) => one.held === held).length;
  return {
    kills: found.length,
    held: { all: count("all"), none: count("none"), "one family": count("one family") },
    late: found.filter(({ late }) => late).length,
    faults: found.flatMap(({ faults }) => faults),
  };
}

type Trial = { readonly backend: Backend; readonly start: StateName; readonly kill: Kill };

function trialOf(number: number): Trial {
  return {
    start: pick(starts, number),
    backend: pick(backends, Math.floor(number / 2)),
    kill: {
      command: "DEL",
      victim: pick(victims, Math.floor(number / 4)),
      aimed: Math.floor(number / 12) % 2 === 0,
    },
  };
}

async function redirected(lab: Lab, start: StateName): Promise<Lab> {
  await load(lab.netns, everyTable, start);
  const { exitCode, stdout } = await call("ADD", lab);
  if (exitCode !== 0) throw new Error(`ADD failed: ${stdout}`);
  return lab;
}

type Judged = {
  readonly held: keyof DeathFindings["held"];
  readonly late: boolean;
  readonly faults: readonly string[];
};

async function killOne(lab: Lab, trial: Trial, timing: Timing): Promise<Judged> {
  const { backend, start, kill } = trial;
  try {
    const before = await readAll(lab.netns);
    const { late, when } = await callAndKill(lab, kill, timing);
    const after = await readAll(lab.netns);
    const faults = [
      ...judge(before, after),
      ...(await judgeKnown(lab, after)),
      ...(await leftByDel(lab)),
      ...judgeForeign(before, await readAll(lab.netns)),
    ];
    const where = `${backend}, "${start}", ${when}`;
    return { held: heldBy(lab, after), late, faults: faults.map((fault) => `${where}: ${fault}`) };
  } finally {
    lab.remove();
  }
}

function ownIn(tables: Tables): (readonly string[])[] {
  return everyTable.map((table) => tables.get(nameOf(table))?.own ?? []);
}

function heldBy({ backend }: Lab, after: Tables): Judged["held"] {
  const here = everyTable.filter((table) => table.backend === backend).map(nameOf);
  const there = here.filter((name) => (after.get(name)?.own ?? []).length > 0);
  if (there.length === 0) return "none";
  return there.length === here.length ? "all" : "one family";
}

function judge(before: Tables, after: Tables): string[] {
  const half = ownIn(after).filter((own) => own.length > 0 && !isDeepStrictEqual(own, ours));
  return [
    ...half.map((own) => `neither all of our rules nor none: ${own.join(" | ")}`),
    ...judgeForeign(before, after),
  ];
}

function judgeForeign(before: Tables, after: Tables): string[] {
  const touched = everyTable.map(nameOf).filter((name) => {
    return !isDeepStrictEqual(after.get(name)?.foreign, before.get(name)?.foreign);
  });
  return touched.map((name) => `foreign rules in ${name} were touched`);
}

// What is left must be known to the next DEL, and CHECK must not say yes to less than all of it.
async function judgeKnown(lab: Lab, after: Tables): Promise<string[]> {
  const held = heldBy(lab, after);
  const isKnown = recordsOf(lab).some((name) => name.endsWith(".json"));
  if (held !== "none" && !isKnown) return ["rules are left, and there is no record"];
  if (held === "all" || !isKnown) return [];
  const { exitCode } = await call("CHECK", lab);
  return exitCode === 0 ? [`CHECK says yes, and the tables hold ${held}`] : [];
}
