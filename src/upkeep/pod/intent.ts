// What shall be redirected for a pod: the conf, then what the pod says, for the families that it has.
import type { PrevResult } from "../../cni/result.ts";
import { families } from "../../netfilter/table.ts";
import { familyOf } from "../../redirect/cidr.ts";
import { isIpv6Off, type Plan, warnOfIpv6 } from "../families.ts";
import type { Asking } from "./asking.ts";
import { wishFor } from "./wish.ts";

/** The pod's intent, or why it has none. */
export type Derived =
  /** Required are the families that prevResult names. */
  ({ readonly kind: "intent" } & Plan) | { readonly kind: "skip"; readonly reason: string };

/**
 * Derives the intent; the same for ADD, and for a CHECK that finds no record.
 * @throws Fault invalid-conf for the conf, pod-unreadable for annotations that cannot be honoured, that or try-again when the
 * pod cannot be read.
 */
export async function deriveIntent(asking: Asking, prevResult: PrevResult): Promise<Derived> {
  const wish = await wishFor(asking);
  if (wish.kind === "skip") return wish;
  const { addresses } = prevResult;
  const present = addresses.map(familyOf);
  const required = families.filter((family) => present.includes(family));
  if (isIpv6Off(asking) && required.includes("ipv6")) warnOfIpv6(asking, { addresses });
  for (const { message, fields } of wish.warnings) asking.log.warn({ ...fields }, message);
  return { kind: "intent", intent: wish.intent, required };
}
