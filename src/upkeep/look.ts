// Jobs that only look: which tables there are to be read, with the programs that the node has.

import type { Call } from "../command/call.ts";
import { type Scope, savedOf } from "../netfilter/converge/job.ts";
import type { Job } from "../netfilter/iptables/job.ts";
import type { Backend } from "../netfilter/table.ts";
import { openPrograms } from "../node/programs.ts";

/** Jobs that read a backend's tables in these families, where the node has programs for it. */
export async function looksInto(
  call: Call,
  backend: Backend,
  wanted: readonly Scope[],
): Promise<Job[]> {
  const toolbox = openPrograms(call.deps);
  const jobs = wanted.map(async ({ family, tables }): Promise<Job[]> => {
    const tools = await toolbox.find(backend, family);
    if (tools !== undefined) {
      return [{ family, backend, tools, restore: "", ...savedOf(tables) }];
    }
    const plain = await toolbox.findPlain(family);
    const isUnknown = plain !== undefined && plain.backend === undefined;
    const said = `${plain?.tools.restore} gave no answer to --version`;
    if (isUnknown) call.log.warn({ backend, family, said }, hiddenWarning);
    return [];
  });
  return (await Promise.all(jobs)).flat();
}

/** What is said of a backend whose table may hold what we cannot see. */
export const hiddenWarning =
  "the other backend's nat table cannot be shown; whether it redirects as well is not known";
