// What a `linkerd` object of the conf means, for the tests that begin there.
import { readSettings } from "../../src/conf/reader.ts";
import { type Intent, intentSchema } from "../../src/mesh/linkerd/intent.ts";
import type { Family } from "../../src/netfilter/table.ts";

export type Meant = { readonly intent: Intent; readonly families: readonly Family[] };

/** The intent of a pod that says nothing, and the families that are wanted. Throws the first problem. */
export function meantBy(linkerd: Readonly<Record<string, unknown>>): Meant {
  const { faults, families, mesh } = readSettings({ linkerd });
  const [problem] = [...faults, ...mesh.problems];
  if (mesh.intentOf === undefined || problem !== undefined) throw new Error(problem);
  return { intent: intentSchema.parse(mesh.intentOf(families).intent.words), families };
}
