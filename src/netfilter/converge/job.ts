// Makes the job that writes a transaction in one family and reads back the tables that it is about.
import { Fault } from "../../fault.ts";
import { traitsOf } from "../backend.ts";
import type { Job } from "../iptables/job.ts";
import { type BackendChoice, toolsFor } from "../iptables/tools.ts";
import { longestRestoreBytes } from "../restore.ts";
import type { Family, OwnTable } from "../table.ts";
import type { Transaction } from "../transaction.ts";

/** Which tables of which family a job is about: a ruleset's, for example. */
export type Scope = {
  readonly family: Family;
  readonly tables: readonly Pick<OwnTable, "name">[];
};

/** A job that writes a transaction and reads the tables back; without one, that only reads. */
export function jobFor(
  choice: BackendChoice,
  { family, tables }: Scope,
  transaction: Transaction = [],
): Job {
  const restore = traitsOf(choice.backend).render(transaction);
  if (Buffer.byteLength(restore) > longestRestoreBytes) {
    throw new Fault(
      "invalid-conf",
      `the ${family} rules are too long to load: ${Buffer.byteLength(restore)} bytes, at most ${longestRestoreBytes}`,
      { details: "exclude ranges of ports instead of thousands of single ports" },
    );
  }
  const tools = toolsFor(choice, family);
  return { family, backend: choice.backend, tools, restore, ...savedOf(tables) };
}

/** What save is to show: one table, or all. Of one alone there is less that others wrote. */
export function savedOf(tables: Scope["tables"]): Pick<Job, "table"> {
  const [name = "nat", ...others] = tables.map((table) => table.name);
  if (others.length > 0) return { table: "all" };
  return name === "nat" ? {} : { table: name };
}
