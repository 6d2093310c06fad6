// Two calls on one attachment at once, as a runtime makes them that has lost its patience: whatever their order, each table
// ends with all of our rules or none, the same in both families, none without a record, CHECK says yes to no less than all, and
// a DEL after them leaves nothing.
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { type Backend, backends } from "../../../../src/netfilter/table.ts";
import { call } from "./call.ts";
import { inParallel, pick } from "./killing.ts";
import { type Lab, leftByDel, makeLab, recordsOf } from "./lab.ts";
import { everyTable, nameOf, ours, readAll } from "./tables.ts";

export type PairFindings = {
  readonly pairs: number;
  /** By what the tables held in the end: all of our rules, none, or those of one family. */
  readonly held: Readonly<Record<"all" | "none" | "one family", number>>;
  readonly faults: readonly string[];
};

export type PairOptions = { readonly pairs: number; readonly atOnce: number };

type Verb = "ADD" | "CHECK" | "DEL";

/** Two calls, and what was before them. */
const kinds: readonly { readonly verbs: readonly [Verb, Verb]; readonly isAdded: boolean }[] = [
  { verbs: ["ADD", "ADD"], isAdded: false },
  { verbs: ["ADD", "DEL"], isAdded: false },
  { verbs: ["ADD", "DEL"], isAdded: true },
  { verbs: ["DEL", "DEL"], isAdded: true },
  { verbs: ["CHECK", "DEL"], isAdded: true },
  { verbs: ["ADD", "CHECK"], isAdded: false },
];

/** Makes pairs of calls, several at once, going through kinds and backends in turn. */
export async function callPairs({ pairs, atOnce }: PairOptions): Promise<PairFindings> {
  const numbers = Array.from({ length: pairs }, (_, number) => number);
  const found = await inParallel(numbers, atOnce, callPair);
  const count = (held: Judged["held"]) => found.filter((one) => one.held === held).length;
  return {
    pairs: found.length,
    held: { all: count("all"), none: count("none"), "one family": count("one family") },
    faults: found.flatMap(({ faults }) => faults),
  };
}

type Judged = {
  readonly held: keyof PairFindings["held"];
  readonly faults: readonly string[];
};

async function callPair(number: number): Promise<Judged> {
  const { verbs, isAdded } = pick(kinds, number);
  const backend: Backend = pick(backends, Math.floor(number / kinds.length));
  const lab = makeLab(backend);
  try {
    if (isAdded) await call("ADD", lab);
    // Either may be ahead, by up to about what a call takes.
    const aheadMs = (Math.random() - 0.5) * 200;
    const answers = await Promise.all(
      verbs.map(async (verb, i) => {
        await sleep(Math.max(0, i === 0 ? -aheadMs : aheadMs));
        return { verb, ...(await call(verb, lab)) };
      }),
    );
    const said = answers.flatMap(({ verb, exitCode, stdout }) => {
      return exitCode === 0 || verb === "CHECK" || isAgain(stdout)
        ? []
        : [`${verb} said: ${stdout}`];
    });
    const { held, faults } = await judge(lab, verbs);
    const all = [...said, ...faults, ...(await leftByDel(lab))];
    const where = `${backend}, ${verbs.join(" and ")} at once (${aheadMs.toFixed(1)} ms)`;
    return { held, faults: all.map((fault) => `${where}: ${fault}`) };
  } finally {
    lab.remove();
  }
}

// One that lost against the other may say so.
function isAgain(stdout: string): boolean {
  return stdout.includes('"code":11,');
}

async function judge(lab: Lab, verbs: readonly Verb[]): Promise<Judged> {
  const tables = await readAll(lab.netns);
  const own = everyTable
    .filter(({ backend }) => backend === lab.backend)
    .map((table) => tables.get(nameOf(table))?.own ?? []);
  const half = own.filter((lines) => lines.length > 0 && !isDeepStrictEqual(lines, ours));
  const held = heldBy(own);
  const isKnown = recordsOf(lab).some((name) => name.endsWith(".json"));
  const saysYes = (await call("CHECK", lab)).exitCode === 0;
  return {
    held,
    faults: [
      ...half.map((lines) => `neither all of our rules nor none: ${lines.join(" | ")}`),
      ...(held === "one family" ? ["the families differ"] : []),
      ...(held !== "none" && !isKnown ? ["rules are there, and no record"] : []),
      ...(held !== "all" && saysYes ? ["CHECK says yes, and rules are missing"] : []),
      ...(held !== "all" && !verbs.includes("DEL") ? ["only ADD, and rules are missing"] : []),
    ],
  };
}

function heldBy(own: readonly (readonly string[])[]): Judged["held"] {
  const there = own.filter((lines) => lines.length > 0).length;
  if (there === 0) return "none";
  return there === own.length ? "all" : "one family";
}
