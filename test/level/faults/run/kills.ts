// SIGKILL at a random moment of ADD: whatever was hit, each table then holds all of what it held before or all of what ADD
// was to make of it; the next ADD ends complete, and a DEL in its place leaves nothing.
import { isDeepStrictEqual } from "node:util";
import type { Backend } from "../../../../src/netfilter/table.ts";
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

/** Kills ADDs, several at once, going through starts, backends, victims and what comes next in turn. */
export async function killAdds({ kills, atOnce, restore }: KillOptions): Promise<Findings> {
  const open = (backend: Backend) => makeLab(backend, restore);
  const timing = await measure("ADD", () => Promise.resolve(open("nft")), atOnce);
  const trials = Array.from({ length: kills }, (_, number) => trialOf(number));
  const found = await inParallel(trials, atOnce, (trial) => {
    return killOne(open(trial.backend), trial, timing);
  });
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
  readonly kill: Kill;
  /** What the runtime calls after the death. */
  readonly next: "ADD" | "DEL";
};

// Each number another combination, until all have been: so many of each, however many there are.
function trialOf(number: number): Trial {
  const round = Math.floor(number / starts.length);
  return {
    start: pick(starts, number),
    backend: pick(["nft", "legacy"] as const, round),
    kill: {
      command: "ADD",
      victim: pick(victims, Math.floor(round / 2)),
      aimed: number % 2 === 0,
    },
    next: pick(["ADD", "DEL"] as const, Math.floor(number / 2)),
  };
}

type Judged = {
  readonly held: keyof Findings["held"];
  readonly late: boolean;
  readonly faults: readonly string[];
};

async function killOne(lab: Lab, trial: Trial, timing: Timing): Promise<Judged> {
  const { start, backend, kill, next } = trial;
  try {
    const [here, there] = [true, false].map((isHere) =>
      everyTable.filter((table) => (table.backend === backend) === isHere),
    );
    await load(lab.netns, here ?? [], start.here);
    await load(lab.netns, there ?? [], start.there);
    const before = await readAll(lab.netns);
    const { late, when } = await callAndKill(lab, kill, timing);
    const after = await readAll(lab.netns);
    const { held, faults } = judge(backend, before, after);
    const then = next === "ADD" ? judgeAdd(lab, before) : judgeDel(lab, before, after);
    const where = `${backend}, from "${start.here}", "${start.there}", ${when}`;
    const all = [...faults, ...(await then)];
    return { held, late, faults: all.map((fault) => `${where}: ${fault}`) };
  } finally {
    lab.remove();
  }
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

async function judgeAdd(lab: Lab, before: Tables): Promise<string[]> {
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
    ...(await leftByDel(lab)),
  ];
}

// Without a record nothing may have been written: what stands there then is others', whatever its chains are called.
async function judgeDel(lab: Lab, before: Tables, after: Tables): Promise<string[]> {
  if (recordsOf(lab).some((name) => name.endsWith(".json"))) return await leftByDel(lab);
  const written = everyTable.map(nameOf).filter((name) => {
    return !isDeepStrictEqual(after.get(name)?.own, before.get(name)?.own);
  });
  return written.map((name) => `${name} was written to, and there is no record`);
}
