// Jobs that only look: which tables there are to be read, with the programs that the node has.
import { type Scope, savedOf } from "../netfilter/converge/job.ts";
import type { Job } from "../netfilter/iptables/job.ts";
import type { Backend } from "../netfilter/table.ts";
import { openPrograms } from "../node/programs.ts";
import type { Task } from "./task.ts";

type Looker = Pick<Task, "deps" | "log">;

/** Jobs that read a backend's tables in these families, where the node has programs for it. */
export async function looksInto(
  { deps, log }: Looker,
  backend: Backend,
  wanted: readonly Scope[],
): Promise<Job[]> {
  const programs = openPrograms(deps);
  const jobs = wanted.map(async ({ family, tables }): Promise<Job[]> => {
    const tools = await programs.find(backend, family);
    if (tools !== undefined) {
      return [{ family, backend, tools, restore: "", ...savedOf(tables) }];
    }
    const plain = await programs.findPlain(family);
    const isUnknown = plain !== undefined && plain.backend === undefined;
    const said = `${plain?.tools.restore} gave no answer to --version`;
    if (isUnknown) log.warn({ backend, family, said }, hiddenWarning);
    return [];
  });
  return (await Promise.all(jobs)).flat();
}

/** The same through several backends. */
export async function looksIntoAll(
  task: Looker,
  through: readonly Backend[],
  wanted: readonly Scope[],
): Promise<Job[]> {
  return (await Promise.all(through.map((backend) => looksInto(task, backend, wanted)))).flat();
}

/** What is said of a backend whose table may hold what we cannot see. */
export const hiddenWarning =
  "the other backend's nat table cannot be shown; whether it redirects as well is not known";
