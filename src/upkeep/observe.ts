// Looks for what differs in a netns: the tables of all backends, nft's own view where nft is on the node, and the kernel
// settings. Edge; changes nothing. Serves CHECK, and watching.
// One child for the rules; a second one looks closer where something of nft's own may take the traffic, or keeps save from
// showing all.
import { Fault } from "../fault.ts";
import type { Setting } from "../mesh/profile.ts";
import { othersThan, traitsOf } from "../netfilter/backend.ts";
import type { StandFor } from "../netfilter/compare.ts";
import { jobFor, savedOf } from "../netfilter/converge/job.ts";
import { mixedDoubt, readTables } from "../netfilter/converge/readout.ts";
import { BatchError, makeClient } from "../netfilter/iptables/client.ts";
import type { Job, Outcome } from "../netfilter/iptables/job.ts";
import { type BackendChoice, toolsFor } from "../netfilter/iptables/tools.ts";
import { nativeName } from "../netfilter/outside.ts";
import { asksForRules, compareSight, type Save, type Sight } from "../netfilter/sight.ts";
import type { Backend, Family, Ruleset, Table, TableName } from "../netfilter/table.ts";
import type { Netns } from "../netns/path.ts";
import type { Drift } from "./drift.ts";
import { spokenDrifts } from "./families.ts";
import { looksIntoAll } from "./look.ts";
import { listAll, listChains, readNative } from "./native.ts";
import { settingDrifts } from "./settings.ts";
import type { Task } from "./task.ts";

/** What a netns should hold, and through which backend it was written. */
export type Expected = {
  readonly rulesets: readonly Ruleset[];
  /** Whose rules are as good as those of the rulesets. */
  readonly standFor: StandFor;
  readonly choice: BackendChoice;
  readonly settings: readonly Setting[];
  /** Families that are not redirected, and must be once the netns speaks them. */
  readonly open: readonly Family[];
  /** Those that may be left out where their tools do not show the table. */
  readonly optional: readonly Family[];
};

/** What came of a look. */
export type Observed =
  /** All is as it should be. */
  | { readonly kind: "as-intended" }
  /**
   * Something differs from what was written through the backend. Or nothing that does was seen, and not all could be: then each
   * drift is an `unverifiable` one.
   */
  | ({ readonly kind: "drift" | "cannot-tell" } & Drifts)
  /** A tool gave no answer, which says nothing of the netns. */
  | { readonly kind: "failed"; readonly error: Fault | BatchError };

export type Drifts = { readonly backend: Backend; readonly drifts: readonly Drift[] };

/** Looks whether a netns is as it should be. Rejects for a fault of our own only. */
export async function observe(task: Task, netns: Netns, expected: Expected): Promise<Observed> {
  try {
    const drifts = [
      ...(await ruleDrifts(task, netns, expected)),
      ...(await settingDrifts(task, netns, expected.settings)),
    ];
    if (drifts.length === 0) return { kind: "as-intended" };
    const isSeen = drifts.some(({ kind }) => kind !== "unverifiable");
    const { backend } = expected.choice;
    return { kind: isSeen ? "drift" : "cannot-tell", backend, drifts };
  } catch (error) {
    if (error instanceof Fault || error instanceof BatchError) return { kind: "failed", error };
    throw error;
  }
}

// @throws Fault try-again when a table could not be read, which is no drift.
async function ruleDrifts(task: Task, netns: Netns, wanted: Expected): Promise<Drift[]> {
  const { choice, open, standFor } = wanted;
  const client = makeClient(task.deps, open);
  const first = await client(netns, await jobsFor(task, wanted), task.remainingMs());
  const saves = first.map((outcome) => readSave(outcome, wanted.rulesets));
  const expected = { rulesets: wanted.rulesets, backend: choice.backend, standFor };
  const seen: Looked = { saves, native: readNative(task, first) };
  const jobs = closerJobs(task, seen, { ...wanted, needsRules: asksForRules(expected, seen) });
  const second = jobs.length === 0 ? [] : await client(netns, jobs, task.remainingMs());
  const again = second.map((outcome) => readSave(outcome, wanted.rulesets));
  const sight = closer(seen, again, readNative(task, second));
  const rulesets = shownOf(wanted, sight);
  requireShown(rulesets, choice, sight);
  return [
    ...compareSight({ ...expected, rulesets }, sight),
    ...spokenDrifts(open, first[0]?.presence),
  ];
}

/** A save, and the job that it came from. */
type LookedAt = Save & { readonly job: Job; readonly isMixed: boolean };

type Looked = Omit<Sight, "saves"> & { readonly saves: readonly LookedAt[] };

// What is optional counts where all of its tables are shown.
function shownOf({ rulesets, optional, choice }: Expected, sight: Sight): Ruleset[] {
  return rulesets.filter((ruleset) => {
    const isShown = tablesOf(ruleset, choice, sight).every(({ table }) => {
      return !(table instanceof Error) && table.unverifiable === undefined;
    });
    return isShown || !optional.includes(ruleset.family);
  });
}

type Named = { readonly name: TableName; readonly table: Table | Error };

// A ruleset's own tables as its backend shows them.
function tablesOf(
  { family, tables }: Ruleset,
  { backend }: BackendChoice,
  { saves }: Sight,
): Named[] {
  const found = saves.find((save) => save.family === family && save.backend === backend);
  return found === undefined ? [] : tables.map(({ name }) => ({ name, table: found.tables[name] }));
}

async function jobsFor(task: Task, { rulesets, choice }: Expected): Promise<Job[]> {
  const own = rulesets.map((ruleset) => jobFor(choice, ruleset));
  const others = await looksIntoAll(task, othersThan(choice.backend), rulesets);
  const jobs = [...own, ...others].map((job): Job => ({ ...job, table: "all" }));
  // Our tables as nft sees them tell whether they act at all; not `list tables`, for which 1.0.6 reads all rules of all.
  const listed = traitsOf(choice.backend).isShownByNft ? rulesets : [];
  const listings = listed.flatMap(({ family, tables }) =>
    tables.map(({ name }) => `list table ${nativeName(family, name)}`),
  );
  return asking(task, jobs, [listChains, ...listings]);
}

function asking(task: Task, jobs: readonly Job[], listings: readonly string[]): Job[] {
  const program = task.deps.toolbox.find("nft");
  if (program === undefined) {
    task.log.debug({}, "nft is not on the node: chains of nft's own are not seen");
    return [...jobs];
  }
  return jobs.map((job, i) => (i === 0 ? { ...job, native: { program, listings } } : job));
}

type Closer = Pick<Expected, "rulesets"> & { readonly needsRules: boolean };

// A rule in some table can end the save of all, or make it a text that nobody can trust; the one table of a ruleset may be shown
// by itself. And rules of nft's own are only asked for where they matter: a listing of thousands takes seconds.
function closerJobs(task: Task, { saves }: Looked, { rulesets, needsRules }: Closer): Job[] {
  const doubtful = saves.filter(({ backend, isMixed }) => traitsOf(backend).savesOne && isMixed);
  const looked = needsRules && doubtful.length === 0 ? saves.slice(0, 1) : doubtful;
  const jobs = looked.map(({ job }) => alone(job, rulesets));
  return needsRules ? asking(task, jobs, [listAll]) : jobs;
}

function alone({ family, backend, tools, restore }: Job, rulesets: readonly Ruleset[]): Job {
  const own = rulesets.find((ruleset) => ruleset.family === family)?.tables ?? [];
  return { family, backend, tools, restore, ...savedOf(own) };
}

function closer(sight: Sight, second: readonly LookedAt[], native: Sight["native"]): Sight {
  const saves = sight.saves.map((save) => withAgain(save, second));
  if (!second.some(({ job }) => job.native !== undefined)) return { saves, native: sight.native };
  return { saves, native: native ?? new Error("nft lists chains of its own, but not their rules") };
}

// Each text once: it may be long. Of several tables of ours no line is trusted where a rule of another may be behind it.
function readSave(outcome: Outcome, rulesets: readonly Ruleset[]): LookedAt {
  const { job } = outcome;
  const { isMixed, ...tables } = readTables(outcome);
  const own = rulesets.find(({ family }) => family === job.family)?.tables ?? [];
  const doubted = own.length > 1 && isMixed ? doubting(tables, own) : tables;
  return { job, family: job.family, backend: job.backend, tables: doubted, isMixed };
}

function doubting(tables: Save["tables"], own: Ruleset["tables"]): Save["tables"] {
  const doubted = own.map(({ name }) => {
    const table = tables[name];
    const isDoubted = table instanceof Error || table.unverifiable !== undefined;
    return [name, isDoubted ? table : { ...table, unverifiable: mixedDoubt }] as const;
  });
  return { ...tables, ...Object.fromEntries(doubted) };
}

// What the second look showed of the one table that it was about, beside what the first one said of the others.
function withAgain(save: Save, second: readonly LookedAt[]): Save {
  const again = second.find(({ family, backend }) => {
    return family === save.family && backend === save.backend;
  });
  if (again === undefined) return save;
  const { table = "nat" } = again.job;
  const tables = table === "all" ? again.tables : { ...save.tables, [table]: again.tables[table] };
  return { ...save, tables };
}

function requireShown(rulesets: readonly Ruleset[], choice: BackendChoice, sight: Sight): void {
  for (const ruleset of rulesets) {
    const { family } = ruleset;
    for (const { name, table } of tablesOf(ruleset, choice, sight)) {
      if (!(table instanceof Error)) continue;
      const { save } = toolsFor(choice, family);
      throw new Fault(
        "try-again",
        `${save} (${choice.backend}, ${family}) could not show the ${name} table: ${table.message}`,
        { details: "whether the redirect is in place is not known" },
      );
    }
  }
}
