// Jobs that only look: which tables there are to be read, with the programs that the node has.
import type { Job } from "../netfilter/client.ts";
import { type Backend, backends, type Ruleset } from "../netfilter/table.ts";
import { openToolbox } from "../netfilter/toolbox.ts";
import type { Call } from "./call.ts";

/** Jobs that read a backend's tables in these families, where the node has programs for it. */
export async function looksInto(
  call: Call,
  backend: Backend,
  wanted: readonly Pick<Ruleset, "family">[],
): Promise<Job[]> {
  const toolbox = openToolbox(call.deps);
  const jobs = wanted.map(async ({ family }): Promise<Job[]> => {
    const tools = await toolbox.find(backend, family);
    return tools === undefined ? [] : [{ family, backend, tools, restore: "" }];
  });
  return (await Promise.all(jobs)).flat();
}

/** The backend that is not this one. */
export function otherThan(backend: Backend): Backend {
  return backends.find((other) => other !== backend) ?? backend;
}
