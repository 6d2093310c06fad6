// What the conf and the pod wish for, whatever families the pod has. Whether the pod has a proxy is found out first: a conf
// that cannot be meant stops the pods that are redirected by it, and no others.
import { CniError, errorCode } from "../../cni/error.ts";
import { type Call, subjectOf } from "../../command/call.ts";
import { invalidConf } from "../../conf/conf.ts";
import { applyAnnotations } from "../../mesh/linkerd/annotation.ts";
import type { Refusal } from "../../mesh/linkerd/annotation-reader.ts";
import type { Intent } from "../../mesh/linkerd/intent.ts";
import { oddities } from "../../mesh/linkerd/pod.ts";
import { intentOfConf, notesOfConf, problemsOfConf } from "../../mesh/linkerd/values.ts";
import { few } from "../../text/telling.ts";
import { judgePod, type PodWords } from "./facts.ts";

/** An intent whose families are still those of a draft, or why the pod is left alone. */
export type Wish =
  | { readonly kind: "intent"; readonly intent: Intent }
  | { readonly kind: "skip"; readonly reason: string };

/**
 * Gives the pod's wish.
 * @throws CniError 7 for the conf, 103 for annotations that cannot be honoured, 11 or 103 when the pod cannot be read.
 */
export async function wishFor(call: Call): Promise<Wish> {
  const verdict = await judgePod(call);
  if (verdict.kind === "skip") {
    warnOfProblems(call);
    return verdict;
  }
  if (call.confProblems.length > 0) throw invalidConf(few(call.confProblems));
  const draft = intentOfConf(call.plugin.linkerd, ["ipv4"]);
  for (const note of notesOfConf(call.plugin)) call.log.warn({}, note);
  if (verdict.kind === "standalone") return { kind: "intent", intent: draft };
  return { kind: "intent", intent: applyPod(call, draft, await verdict.words()) };
}

function warnOfProblems({ confProblems, plugin, log }: Call): void {
  const problems = [...confProblems, ...problemsOfConf(plugin)];
  if (problems.length === 0) return;
  log.warn({ problems: few(problems) }, "the conf cannot be meant: no pod with a proxy will start");
}

function applyPod(call: Call, draft: Intent, { facts, apiServerPorts }: PodWords): Intent {
  const { "deny-annotations": denials, "on-invalid-annotation": onInvalid } = call.plugin.sluice;
  const denied = deniedIn(denials, call.pod.namespace);
  const dropEntries = onInvalid === "drop-entries";
  const policy = { denied, apiServerPorts, dropEntries };
  const { intent, refusals, notes } = applyAnnotations(draft, facts, policy);
  if (refusals.length > 0) refuse(call, refusals);
  const odd = facts.spec === undefined ? [] : oddities(facts.spec, intent.proxyUid);
  for (const note of [...notes, ...odd]) call.log.warn({ pod: call.pod }, note);
  return intent;
}

// Own keys only: "constructor" is a good name for a namespace.
function deniedIn(
  denials: Call["plugin"]["sluice"]["deny-annotations"],
  namespace: string,
): readonly string[] {
  const key = Object.hasOwn(denials, namespace) ? namespace : "*";
  return denials[key] ?? [];
}

// Rejected by default: a port that is proxied although its owner excluded it, or the other way round, is found late.
function refuse(call: Call, refusals: readonly Refusal[]): void {
  const problems = refusals.map(({ annotation, problem }) => `${annotation}: ${problem}`);
  if (call.plugin.sluice["on-invalid-annotation"] !== "reject") {
    call.log.warn({ pod: call.pod, problems }, "annotations are passed over");
    return;
  }
  throw new CniError(
    errorCode.podUnreadable,
    `${subjectOf(call)} has annotations that cannot be honoured: ${problems.join("; ").slice(0, 1_000)}`,
    { details: "correct or remove them" },
  );
}
