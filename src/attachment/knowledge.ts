// What was found out about the node's backends since it booted, so that it need not be found out for each pod. Pure: shape
// and text of <state-dir>/backend.json.
import * as z from "zod/mini";
import { type Backend, backends } from "../netfilter/table.ts";

const decisionSchema = z.object({
  backend: z.enum(backends),
  reason: z.string(),
  provisional: z.boolean(),
  doubtful: z.optional(z.boolean()),
});

const knowledgeSchema = z.object({
  /** Of another boot, nothing of it holds: kernel, modules and kubelet may be others. */
  bootId: z.string(),
  /** The backend for confs that leave the choice. */
  decision: z.optional(decisionSchema),
  /** Backends that have taken rules since the boot. */
  proven: z._default(z.array(z.enum(backends)), []),
  /** Under which circumstances (see command/status.ts) STATUS found that ADD works, the latest first. */
  ready: z.optional(z.array(z.object({ circumstances: z.string(), backend: z.enum(backends) }))),
  /** Why, under which circumstances, the last look found that it cannot; asked again after a while. */
  refusal: z.optional(
    z.object({
      message: z.string(),
      epochMs: z.number(),
      circumstances: z.optional(z.string()),
    }),
  ),
});

/** What is known, of one boot. */
export type Knowledge = Omit<z.infer<typeof knowledgeSchema>, "bootId">;

/** Nothing is known yet. */
export const noKnowledge: Knowledge = { proven: [] };

/** With one more backend that works, and with its choice, where it was one, made for good. */
export function withProof(known: Knowledge, backend: Backend): Knowledge {
  const { decision, ready } = known;
  const settled = decision?.backend === backend ? { ...decision, provisional: false } : decision;
  return {
    proven: [...new Set([...known.proven, backend])],
    ...(settled === undefined ? {} : { decision: settled }),
    ...(ready === undefined ? {} : { ready }),
  };
}

/** What STATUS found once. */
export type Readiness = NonNullable<Knowledge["ready"]>[number];

/** With one more finding that ADD works; the latest few are kept, since several confs may share a state directory. */
export function withReadiness(known: Knowledge, found: Readiness): Knowledge {
  const others = (known.ready ?? []).filter(
    ({ circumstances }) => circumstances !== found.circumstances,
  );
  return { ...known, ready: [found, ...others.slice(0, 3)] };
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
