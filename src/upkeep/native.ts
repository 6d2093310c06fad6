// nft's own view of a netns, where nft is on the node: what it answered, and what it adds to an ADD that was refused. Edge.
import { jobFor } from "../netfilter/converge/job.ts";
import type { Session } from "../netfilter/converge/left-out.ts";
import { UnverifiableError } from "../netfilter/converge/refusal.ts";
import type { Outcome } from "../netfilter/iptables/job.ts";
import {
  mergeViews,
  NativeSyntaxError,
  type NativeView,
  parseNative,
} from "../netfilter/native/view.ts";
import { few, foreignBases } from "../netfilter/outside.ts";
import { families } from "../netfilter/table.ts";
import { printable } from "../text/printable.ts";
import type { Task } from "./task.ts";

/** Lists the chains, but not their rules: quick, whatever a netns holds. */
export const listChains = "list chains";

/** Lists everything. */
export const listAll = "list ruleset";

/**
 * What nft told with these outcomes, or why that cannot be used; undefined where it was not asked, or lists nothing here. A
 * table that it does not find is not there.
 */
export function readNative(
  task: Task,
  outcomes: readonly Outcome[],
): NativeView | Error | undefined {
  const answers = outcomes.flatMap(({ native }) => native ?? []);
  const [first] = answers;
  if (first === undefined) return undefined;
  // Ended while it read what this netns holds: that may be the pod's doing.
  const ended = answers.find(({ status }) => status === undefined || status > 128);
  if (ended !== undefined) {
    return new Error(`nft was ended in \`${ended.listing}\` (${ended.status ?? "no time left"})`);
  }
  // No such feature, no such kernel: nobody's doing in this netns.
  if (first.status !== 0) {
    const { status, said } = first;
    task.log.warn({ status, said }, "nft lists no chains here: those of its own are not seen");
    return undefined;
  }
  try {
    const told = answers.filter(({ status }) => status === 0);
    return mergeViews(told.map(({ text }) => parseNative(text)));
  } catch (error) {
    if (error instanceof NativeSyntaxError) return error;
    throw error;
  }
}

/**
 * The error of an ADD; where a table could not be shown, with the base chains of nft's own that stand in it. Whatever goes
 * wrong meanwhile, the error itself says enough.
 */
export async function withForeignBases(
  task: Task,
  { client, place, choice, remainingMs }: Session,
  error: unknown,
): Promise<unknown> {
  const program = task.deps.toolbox.find("nft");
  const [family] = choice.tools.keys();
  if (!(error instanceof UnverifiableError) || program === undefined || family === undefined) {
    return error;
  }
  try {
    const native = { program, listings: [listChains] };
    const jobs = [{ ...jobFor(choice, { family, tables: [] }), native }];
    const view = readNative(task, await client(place, jobs, remainingMs()));
    if (view === undefined || view instanceof Error) return error;
    const names = families
      .flatMap((each) => foreignBases(each, view))
      .map((name) => printable(name));
    if (names.length === 0) return error;
    const details = `${error.details}; there is ${few(names)}`;
    return new UnverifiableError(error.kind, error.message, { details, cause: error });
  } catch (problem) {
    task.log.debug({ err: problem }, "nft was not to be asked what stands in the nat table");
    return error;
  }
}
