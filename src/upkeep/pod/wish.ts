// What the conf and the pod wish for. Whether the pod has a proxy is found out first: a conf that is invalid stops the pods
// that are redirected by it, and no others.
import { type PodSettings, problemsOf } from "../../conf/settings.ts";
import { Fault } from "../../fault.ts";
import type { Planned, Refusal, Said } from "../../mesh/profile.ts";
import { few } from "../../text/telling.ts";
import { nameOf } from "../task.ts";
import type { Asking } from "./asking.ts";
import { judgePod, type PodWords } from "./facts.ts";

/** What is wished for, for all families that the conf wants, or why the pod is left alone. */
export type Wish =
  | ({ readonly kind: "intent" } & Pick<Planned, "intent" | "warnings">)
  | { readonly kind: "skip"; readonly reason: string };

/**
 * Gives the pod's wish.
 * @throws Fault invalid-conf for the conf, pod-unreadable for annotations that cannot be honoured, that or try-again when the
 * pod cannot be read.
 */
export async function wishFor(asking: Asking): Promise<Wish> {
  const verdict = await judgePod(asking);
  if (verdict.kind === "skip") {
    warnOfProblems(asking);
    return verdict;
  }
  const { faults, families, mesh, notes, pods } = asking.settings;
  if (faults.length > 0) throw invalidConf(few(faults));
  const { intentOf } = mesh;
  if (intentOf === undefined) throw firstOf(mesh.problems);
  for (const note of notes) asking.log.warn({}, note);
  if (verdict.kind === "standalone") return { kind: "intent", ...intentOf(families) };
  if (pods.problems.length > 0) throw firstOf(pods.problems);
  const said = saidBy(asking, await verdict.words());
  return { kind: "intent", ...told(asking, intentOf(families, said)) };
}

function warnOfProblems({ settings, log }: Asking): void {
  const problems = problemsOf(settings);
  if (problems.length === 0) return;
  log.warn({ problems: few(problems) }, "the conf is invalid: no pod with a proxy will start");
}

function firstOf([problem = ""]: readonly string[]): Fault {
  return invalidConf(problem);
}

/** The error for a conf that is invalid; `problem` names the key and the value. */
function invalidConf(problem: string): Fault {
  return new Fault("invalid-conf", `invalid conf: ${problem}`);
}

function saidBy({ settings, subject }: Asking, words: PodWords): Said {
  const { denials, onInvalid } = settings.pods;
  return {
    ...words,
    denied: deniedIn(denials, subject.pod.namespace),
    dropEntries: onInvalid === "drop-entries",
  };
}

// Own keys only: "constructor" is a good name for a namespace.
function deniedIn(denials: PodSettings["denials"], namespace: string): readonly string[] {
  const key = Object.hasOwn(denials, namespace) ? namespace : "*";
  return denials[key] ?? [];
}

function told(asking: Asking, planned: Planned): Planned {
  const { refusals, notes } = planned;
  if (refusals.length > 0) refuse(asking, refusals);
  for (const note of notes) asking.log.warn({ pod: asking.subject.pod }, note);
  return planned;
}

// Rejected by default: a port that is proxied although its owner excluded it, or the other way round, is found late.
function refuse(asking: Asking, refusals: readonly Refusal[]): void {
  const problems = refusals.map(({ annotation, problem }) => `${annotation}: ${problem}`);
  if (asking.settings.pods.onInvalid !== "reject") {
    asking.log.warn({ pod: asking.subject.pod, problems }, "annotations are passed over");
    return;
  }
  throw new Fault(
    "pod-unreadable",
    `${nameOf(asking.subject)} has annotations that cannot be honoured: ${problems.join("; ").slice(0, 1_000)}`,
    { details: "correct or remove them" },
  );
}
