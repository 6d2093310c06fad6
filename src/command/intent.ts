// What shall be redirected for the call's pod: the conf, then what the pod says, for the families that it has.
import { CniError, errorCode } from "../cni/error.ts";
import type { PrevResult } from "../cni/result.ts";
import { applyAnnotations, type Refusal } from "../mesh/annotation.ts";
import { oddities } from "../mesh/pod.ts";
import { intentOfConf } from "../mesh/values.ts";
import { readAddresses } from "../netns/addresses.ts";
import type { Netns } from "../netns/path.ts";
import { familiesOf, type Intent } from "../redirect/intent.ts";
import { type Call, lookingOf, subjectOf } from "./call.ts";
import { judgePod, type Verdict } from "./pod-facts.ts";

/** The pod's intent, or why it has none. */
export type Derived =
  | { readonly kind: "intent"; readonly intent: Intent }
  | { readonly kind: "skip"; readonly reason: string };

/**
 * Derives the intent; the same for ADD, and for a CHECK that finds no record.
 * @throws CniError 7 for the conf, 103 for annotations that cannot be honoured, 11 or 103 when the pod cannot be read.
 */
export async function deriveIntent(
  call: Call,
  netns: Netns,
  prevResult: PrevResult,
): Promise<Derived> {
  const { linkerd } = call.plugin;
  // Values first: a conf that cannot be meant is reported before anything is asked.
  const draft = intentOfConf(linkerd, ["ipv4"]);
  const verdict = await judgePod(call);
  if (verdict.kind === "skip") return verdict;
  const intent = verdict.kind === "pod" ? applyPod(call, draft, verdict) : draft;
  const addresses =
    prevResult.addresses.length > 0
      ? prevResult.addresses
      : await readAddresses(netns, lookingOf(call));
  const families = familiesOf(addresses, linkerd.ipv6);
  warnOfGaps(call, addresses, { ...intent, families });
  return { kind: "intent", intent: { ...intent, families } };
}

// What was asked for, and is seldom meant.
function warnOfGaps(call: Call, addresses: readonly string[], intent: Intent): void {
  const { families, excludeSubnets } = intent;
  if (!families.includes("ipv6") && familiesOf(addresses, true).includes("ipv6")) {
    call.log.warn(
      { addresses },
      "the pod has IPv6 addresses and linkerd.ipv6 is off: they pass the proxy by",
    );
  }
  const all = excludeSubnets.filter(({ family, text }) => {
    return families.includes(family) && text.endsWith("/0");
  });
  if (all.length > 0) {
    const subnets = all.map(({ text }) => text);
    call.log.warn({ subnets }, "all sources are excluded: what comes in passes the proxy by");
  }
}

function applyPod(call: Call, draft: Intent, verdict: Extract<Verdict, { kind: "pod" }>): Intent {
  const { facts, apiServerPorts } = verdict;
  const denied = deniedIn(call.plugin.sluice["deny-annotations"], call.pod.namespace);
  const { intent, refusals, notes } = applyAnnotations(draft, facts, { denied, apiServerPorts });
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
  if (call.plugin.sluice["on-invalid-annotation"] === "warn") {
    call.log.warn({ pod: call.pod, problems }, "annotations are passed over");
    return;
  }
  throw new CniError(
    errorCode.podUnreadable,
    `${subjectOf(call)} has annotations that cannot be honoured: ${problems.join("; ").slice(0, 1_000)}`,
    { details: "correct or remove them" },
  );
}
