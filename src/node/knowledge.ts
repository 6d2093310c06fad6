// What was found out about the node's backends since it booted, so that it need not be found out for each pod. Pure: shape
// and text of <state-dir>/backend.json.
import * as z from "zod/mini";
import { type Backend, backends, type Family, families } from "../netfilter/table.ts";
import { parseJson } from "../text/json.ts";

const decisionSchema = z.object({
  backend: z.enum(backends),
  reason: z.string(),
  /** Made without a hint, by trial only: a hint that shows later wins, until the first pod is set. */
  provisional: z.boolean(),
  /** The hints are in several backends, so one of them is stale. */
  doubtful: z.optional(z.boolean()),
  /** Not all could be looked at, so a hint may have been missed: asked again, whatever pods were set meanwhile. */
  incomplete: z.optional(z.boolean()),
});

/** Through which backend rules are written where the conf leaves the choice, and why. */
export type Decision = z.infer<typeof decisionSchema>;

const proofSchema = z.object({ backend: z.enum(backends), family: z.enum(families) });

const answerSchema = z.object({
  /** Under which circumstances (see command/status.ts) it was given, and when. */
  circumstances: z.string(),
  epochMs: z.number(),
  /** The backend that pods get; none where no pod could be served. */
  backend: z.optional(z.enum(backends)),
  /** Why no pod at all could be served. */
  problems: z.array(z.string()),
  /** What some pods lack. */
  warnings: z.array(z.string()),
});

const knowledgeSchema = z.object({
  /** Of another boot, nothing of it holds: kernel, modules and kubelet may be others. */
  bootId: z.string(),
  /** The backend for confs that leave the choice. */
  decision: z.optional(decisionSchema),
  /** What has taken rules since the boot. An older version's list knows no families, and so proves nothing. */
  proven: z.catch(z.array(proofSchema), []),
  /** What STATUS answered last, by circumstances, the latest first. */
  answers: z.optional(z.catch(z.array(answerSchema), [])),
});

/** What is known, of one boot. */
export type Knowledge = Omit<z.infer<typeof knowledgeSchema>, "bootId">;

/** Nothing is known yet. */
export const noKnowledge: Knowledge = { proven: [] };

/** One family through one backend. */
export type Proof = z.infer<typeof proofSchema>;

/** True when the backend has taken rules of all these families. */
export function isProven(known: Knowledge, backend: Backend, wanted: readonly Family[]): boolean {
  return wanted.every((family) => {
    return known.proven.some((proof) => proof.backend === backend && proof.family === family);
  });
}

/** With more families that the backend takes, and with its choice, where it was one, made for good. */
export function withProof(known: Knowledge, backend: Backend, taken: readonly Family[]): Knowledge {
  const fresh = taken.filter((family) => !isProven(known, backend, [family]));
  const { decision, answers = [], ...rest } = known;
  const isSettled = decision?.backend === backend && decision.incomplete !== true;
  // What was missing when STATUS looked may be what has just worked.
  const isFaultless = ({ problems, warnings }: Answer) => problems.length + warnings.length === 0;
  const kept = fresh.length === 0 ? answers : answers.filter(isFaultless);
  return {
    ...rest,
    ...(decision === undefined ? {} : { decision }),
    ...(kept.length === 0 ? {} : { answers: kept }),
    proven: [...known.proven, ...fresh.map((family) => ({ backend, family }))],
    ...(isSettled ? { decision: { ...decision, provisional: false } } : {}),
  };
}

/** What STATUS answered. */
export type Answer = z.infer<typeof answerSchema>;

/** With STATUS' newest answer; the latest few are kept, since several confs may share a state directory. */
export function withAnswer(known: Knowledge, answer: Answer): Knowledge {
  const others = (known.answers ?? []).filter(
    ({ circumstances }) => circumstances !== answer.circumstances,
  );
  return { ...known, answers: [answer, ...others.slice(0, 3)] };
}

/** The file's text. */
export function renderKnowledge(known: Knowledge, bootId: string): string {
  return `${JSON.stringify({ bootId, ...known })}\n`;
}

/** Reads the file; what cannot be read, or is of another boot, is nothing. */
export function parseKnowledge(text: string, bootId: string): Knowledge {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    // Cut short by a full disk: found out anew.
    return noKnowledge;
  }
  const result = z.safeParse(knowledgeSchema, value);
  if (!result.success || result.data.bootId !== bootId) return noKnowledge;
  const { bootId: _, ...known } = result.data;
  return known;
}
