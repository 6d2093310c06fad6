// What was found out about the node's backends since it booted, so that it need not be found out for each pod. Pure: shape
// and text of <state-dir>/backend.json.
import * as z from "zod/mini";
import { type Backend, backends } from "../netfilter/table.ts";

const decisionSchema = z.object({
  backend: z.enum(backends),
  reason: z.string(),
  provisional: z.boolean(),
});

const knowledgeSchema = z.object({
  /** Of another boot, nothing of it holds: kernel, modules and kubelet may be others. */
  bootId: z.string(),
  /** The backend for confs that leave the choice. */
  decision: z.optional(decisionSchema),
  /** Backends that have taken rules since the boot. */
  proven: z._default(z.array(z.enum(backends)), []),
  /** Why the last look at the node for STATUS found that ADD cannot work; asked again after a while. */
  refusal: z.optional(z.object({ message: z.string(), epochMs: z.number() })),
});

/** What is known, of one boot. */
export type Knowledge = Omit<z.infer<typeof knowledgeSchema>, "bootId">;

/** Nothing is known yet. */
export const noKnowledge: Knowledge = { proven: [] };

/** With one more backend that works, and with its choice, where it was one, made for good. */
export function withProof(known: Knowledge, backend: Backend): Knowledge {
  const { decision } = known;
  const settled = decision?.backend === backend ? { ...decision, provisional: false } : decision;
  return {
    proven: [...new Set([...known.proven, backend])],
    ...(settled === undefined ? {} : { decision: settled }),
  };
}

/** The file's text. */
export function renderKnowledge(known: Knowledge, bootId: string): string {
  return `${JSON.stringify({ bootId, ...known })}\n`;
}

/** Reads the file; what cannot be read, or is of another boot, is nothing. */
export function parseKnowledge(text: string, bootId: string): Knowledge {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Cut short by a full disk: found out anew.
    return noKnowledge;
  }
  const result = z.safeParse(knowledgeSchema, value);
  if (!result.success || result.data.bootId !== bootId) return noKnowledge;
  const { bootId: _, ...known } = result.data;
  return known;
}
