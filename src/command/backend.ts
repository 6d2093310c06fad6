// Through which backend a call's rules go: the record's, the conf's, or the one that the node is found to use.
import type { AttachmentRecord } from "../attachment/record.ts";
import { intentOfConf } from "../mesh/values.ts";
import { type BackendChoice, equip, equipPlain } from "../netfilter/choice.ts";
import { makeClient } from "../netfilter/client.ts";
import { type Decision, type Detecting, findHint, tryBackends } from "../netfilter/detect.ts";
import type { Family } from "../netfilter/table.ts";
import { openToolbox } from "../netfilter/toolbox.ts";
import { buildRulesets } from "../redirect/ruleset.ts";
import type { Call } from "./call.ts";

/** A choice, and whether another one would do as well. */
export type Chosen = { readonly choice: BackendChoice; readonly free: boolean };

/**
 * Chooses for these families. `record` is the attachment's own, if it has one: rules are looked for where they were put.
 * @throws CniError 101 when the node has no programs for it, or none that work.
 */
export async function chooseBackend(
  call: Call,
  wanted: readonly Family[],
  record?: AttachmentRecord,
): Promise<Chosen> {
  const toolbox = openToolbox(call.deps);
  const mode = call.plugin.linkerd["iptables-mode"];
  if (record !== undefined) {
    const decided = { backend: record.backend, reason: "as recorded" };
    return { choice: await equip(toolbox, decided, wanted), free: false };
  }
  if (mode === "plain") return { choice: await equipPlain(toolbox, wanted), free: false };
  if (mode === "nft" || mode === "legacy") {
    const decided = { backend: mode, reason: "the conf's iptables-mode" };
    return { choice: await equip(toolbox, decided, wanted), free: false };
  }
  return { choice: await equip(toolbox, await decide(call, wanted), wanted), free: true };
}

/** What detection, and trials of backends, work with. */
export function detectingOf(call: Call): Detecting {
  const { deps, remainingMs } = call;
  return {
    client: makeClient(deps),
    toolbox: openToolbox(deps),
    remainingMs,
    sleep: deps.clock.sleep,
  };
}

// Once a boot. What was decided without a hint is asked of the hints again until it has been used: on a node that is
// starting, the first pods may be here before the kubelet has made its chains.
async function decide(call: Call, wanted: readonly Family[]): Promise<Decision> {
  const known = call.store.knowledge();
  const { decision } = known;
  if (decision !== undefined && !decision.provisional) return decision;
  const detecting = detectingOf(call);
  const found =
    (await findHint(detecting)) ??
    decision ??
    (await tryBackends(detecting, trialRulesets(call, wanted)));
  call.store.keepKnowledge({ ...known, decision: found });
  call.log[found.doubtful === true ? "warn" : "info"]({ ...found }, "backend detected");
  return found;
}

/** Rulesets with every match and target that pods may get. */
export function trialRulesets(
  call: Call,
  wanted: readonly Family[],
): ReturnType<typeof buildRulesets> {
  const intent = intentOfConf(call.plugin.linkerd, [...wanted]);
  return buildRulesets({
    ...intent,
    proxyGid: intent.proxyGid ?? 1,
    excludeInbound: [{ from: 1, to: 2 }],
    excludeSubnets: [
      { family: "ipv4", text: "192.0.2.0/24" },
      { family: "ipv6", text: "2001:db8::/32" },
    ],
  });
}
