// Recognizes the rules of Linkerd's own tools: linkerd-init may run in a pod after ADD, and refills the chains that it finds
// under their names. Pure. Where its rules are complete and do what was meant, there is nothing to repair.
import type { RuleText } from "../../netfilter/table.ts";
import { meaningOf } from "./meaning.ts";

/** True when all that was found are rules of linkerd-init or linkerd-cni, and they do what the expected ones do. */
export function standFor(expected: readonly RuleText[], found: readonly RuleText[]): boolean {
  const meaning = found.every(isLinkerds) ? meaningOf(found) : undefined;
  return meaning !== undefined && meaning === meaningOf(expected);
}

function isLinkerds(rule: RuleText): boolean {
  return / -m comment --comment "?proxy-init\//.test(rule);
}
