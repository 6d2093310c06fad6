// Calls on a node that is short of something: no half state, no yes that is not true, and when the node has what it lacked,
// a DEL leaves nothing.
import { isDeepStrictEqual } from "node:util";
import { type Backend, backends } from "../../../../src/netfilter/table.ts";
import { type Box, type BoxAnswer, makeBox } from "./box.ts";
import { inParallel } from "./killing.ts";
import {
  clockLimits,
  diskLimits,
  groupLimits,
  type Limit,
  placeLimits,
  processLimits,
} from "./limits.ts";
import { everyTable, nameOf, ours, readAll } from "./tables.ts";

export type HardshipFindings = {
  readonly trials: number;
  /** How ADD ended: it said yes, it said why not, or the limit killed it. */
  readonly added: Readonly<Record<"yes" | "no" | "killed", number>>;
  readonly faults: readonly string[];
};

/** Where in an attachment's life something is lacking. */
const moments = ["ADD", "ADD and DEL", "CHECK and DEL", "ADD, once the rules are there"] as const;

type Trial = {
  readonly backend: Backend;
  readonly limit: Limit;
  readonly moment: (typeof moments)[number];
};

export type HardshipOptions = {
  readonly rounds: number;
  readonly atOnce: number;
  /** Of so many trials only the first: a part of each round. */
  readonly oneOf?: number;
};

/** Goes through all limits, moments and backends so many times, several trials at once. */
export async function sufferAll(options: HardshipOptions): Promise<HardshipFindings> {
  const { rounds, atOnce, oneOf = 1 } = options;
  const limits = [
    ...diskLimits,
    ...placeLimits,
    ...processLimits,
    ...clockLimits,
    ...groupLimits(),
  ];
  const trials = Array.from({ length: rounds }, () => trialsOf(limits))
    .flat()
    .filter((_, number) => number % oneOf === 0);
  const found = await inParallel(trials, atOnce, suffer);
  const count = (added: Added) => found.filter((one) => one.added === added).length;
  return {
    trials: found.length,
    added: { yes: count("yes"), no: count("no"), killed: count("killed") },
    faults: found.flatMap(({ faults }) => faults),
  };
}

function trialsOf(limits: readonly Limit[]): Trial[] {
  return limits.flatMap((limit) =>
    moments
      // Between the rules and the record only what is of the disk can come.
      .filter((moment) => moment !== moments[3] || diskLimits.includes(limit))
      .flatMap((moment) => backends.map((backend) => ({ backend, limit, moment }))),
  );
}

type Added = keyof HardshipFindings["added"];
type Suffered = { readonly added: Added; readonly faults: readonly string[] };

async function suffer(trial: Trial): Promise<Suffered> {
  const { backend, limit, moment } = trial;
  const box = await makeBox(backend);
  try {
    const { added, faults } = await live(box, trial);
    const all = [...faults, ...(await leftByDel(box))];
    return {
      added,
      faults: all.map((fault) => `${backend}, ${limit.name} at ${moment}: ${fault}`),
    };
  } finally {
    box.remove();
  }
}

async function live(box: Box, { limit, moment }: Trial): Promise<Suffered> {
  const { setup, heal } = limit;
  const between = moment === "ADD, once the rules are there";
  if (between) box.afterRestore(setup);
  const isLate = moment === "CHECK and DEL";
  const add = await box.call("ADD", isLate || between ? "" : setup);
  box.afterRestore("");
  const faults = isLate ? judge("CHECK", await box.call("CHECK", setup), limit) : [];
  const told = judge("ADD", add, limit);
  if (moment === "ADD" || between) await box.run(heal);
  const held = await judgeHeld(box, add);
  if (moment === "ADD" || between)
    return { added: endOf(add), faults: [...faults, ...told, ...held] };
  const del = judge("DEL", await box.call("DEL", setup), limit);
  await box.run(heal);
  return { added: endOf(add), faults: [...faults, ...told, ...held, ...del] };
}

function endOf({ exitCode }: BoxAnswer): Added {
  if (exitCode === 0) return "yes";
  return exitCode === 1 ? "no" : "killed";
}

// An answer is JSON or nothing, and DEL's is always yes. Where the process itself lacks what it needs to start, there may be
// no answer at all, and also DEL may say that it is to be called again.
function judge(command: string, answer: BoxAnswer, { mayDie }: Limit): string[] {
  const { exitCode, stdout, stderr, inTime } = answer;
  const said = `${command} ended with ${exitCode}: ${stdout}${stderr}`;
  if (!inTime) return [`${command} did not end`];
  const isAnswered = exitCode === 0 || (exitCode === 1 && stdout !== "");
  if (!isAnswered) return mayDie ? [] : [said];
  if (stdout !== "" && !isJson(stdout)) return [said];
  const mustSayYes = command === "DEL" && !(mayDie && stdout.includes('"code":11,'));
  return exitCode === 1 && mustSayYes ? [said] : [];
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Half states, rules that are not known, and a yes that is not true. */
async function judgeHeld(box: Box, add: BoxAnswer): Promise<string[]> {
  const tables = await readAll(box.netns);
  const own = everyTable
    .filter(({ backend }) => backend === box.backend)
    .map((table) => tables.get(nameOf(table))?.own ?? []);
  const half = own.filter((lines) => lines.length > 0 && !isDeepStrictEqual(lines, ours));
  const isWhole = own.every((lines) => isDeepStrictEqual(lines, ours));
  return [
    ...half.map((lines) => `neither all of our rules nor none: ${lines.join(" | ")}`),
    ...(add.exitCode === 0 && !isWhole ? ["ADD said yes, and rules are missing"] : []),
  ];
}

async function leftByDel(box: Box): Promise<string[]> {
  const { exitCode, stdout, stderr } = await box.call("DEL");
  const tables = await readAll(box.netns);
  const rules = everyTable.map(nameOf).filter((name) => (tables.get(name)?.own ?? []).length > 0);
  const files = (await box.run(`find "$state" -type f`)).split("\n").filter((name) => {
    return name !== "" && !name.endsWith("/backend.json");
  });
  return [
    ...(exitCode === 0 && stdout === "" ? [] : [`DEL ended with ${exitCode}: ${stdout}`]),
    ...rules.map((name) => `DEL leaves rules in ${name} (${stderr.trim()})`),
    ...files.map((name) => `DEL leaves the file ${name}`),
  ];
}
