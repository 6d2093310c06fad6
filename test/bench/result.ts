// The results of a run, and what each is held against: pure.
import { type Label, nameOf } from "./case.ts";
import { ratio, type Summary } from "./stats.ts";

export type Result = Label & { readonly summary: Summary };

/** Median wall time of the case with exactly this label; undefined when it was not measured. */
export function medianOf(results: readonly Result[], label: Label): number | undefined {
  const name = nameOf(label);
  return results.find((result) => nameOf(result) === name)?.summary.wallMs.median;
}

/**
 * The time of the least that any program on Node has to do for this: an empty Node, and the tools it cannot do without.
 * undefined where there is no such thing.
 */
export function leastOf(results: readonly Result[], label: Label): number | undefined {
  const node = medianOf(results, { ...nothing, action: "node -e 0" });
  const tool = toolFor(label.action);
  if (node === undefined || tool === undefined) return undefined;
  if (tool === "") return node;
  const { families, backend } = label;
  const tools = medianOf(results, { ...nothing, families, backend, action: tool });
  return tools === undefined ? undefined : node + tools;
}

const nothing: Label = { action: "", families: "", backend: "", source: "", way: "bare" };

function toolFor(action: string): string | undefined {
  if (/^(ADD|DEL$)/.test(action)) return "nsenter + restore";
  if (action === "CHECK") return "nsenter + save";
  return /^(DEL, no record|VERSION)$/.test(action) ? "" : undefined;
}

/** How many times as long as the init container's way for the same pod. */
export function toInit(results: readonly Result[], label: Label): number | undefined {
  const init = medianOf(results, { ...label, way: "init container", source: "" });
  const own = medianOf(results, label);
  return init === undefined || own === undefined ? undefined : ratio(own, init);
}

/** How many times as long as the least that has to be done. */
export function toLeast(results: readonly Result[], label: Label): number | undefined {
  const least = leastOf(results, label);
  const own = medianOf(results, label);
  return least === undefined || own === undefined ? undefined : ratio(own, least);
}
