// What shall be redirected for the call's pod: the conf, then what the pod says, for the families that it has.
import type { PrevResult } from "../../cni/result.ts";
import type { Call } from "../../command/call.ts";
import { optionNames } from "../../conf/names.ts";
import type { Intent } from "../../mesh/profile.ts";
import { type Family, families } from "../../netfilter/table.ts";
import { familyOf } from "../../redirect/cidr.ts";
import { wishFor } from "./wish.ts";

/** The pod's intent, or why it has none. */
export type Derived =
  | {
      readonly kind: "intent";
      /** For all families that are wanted; which of them the netns has, and must have, shows when it is entered. */
      readonly intent: Intent;
      /** Those that prevResult names: they must be redirected, whatever the netns shows. */
      readonly named: readonly Family[];
    }
  | { readonly kind: "skip"; readonly reason: string };

/**
 * Derives the intent; the same for ADD, and for a CHECK that finds no record.
 * @throws Fault invalid-conf for the conf, pod-unreadable for annotations that cannot be honoured, try-again or pod-unreadable when the pod cannot be read.
 */
export async function deriveIntent(call: Call, prevResult: PrevResult): Promise<Derived> {
  const wish = await wishFor(call);
  if (wish.kind === "skip") return wish;
  const { addresses } = prevResult;
  const present = addresses.map(familyOf);
  const named = families.filter((family) => present.includes(family));
  if (isIpv6Off(call) && named.includes("ipv6")) warnOfIpv6(call, { addresses });
  for (const { message, fields } of wish.warnings) call.log.warn({ ...fields }, message);
  return { kind: "intent", intent: wish.intent, named };
}

/** True where the conf does not want IPv6 redirected. */
export function isIpv6Off({ settings }: Call): boolean {
  return !settings.families.includes("ipv6");
}

/** Warns of IPv6 that passes by because the conf says so; `found` shows that it is there. */
export function warnOfIpv6(call: Call, found: Readonly<Record<string, unknown>>): void {
  call.log.warn(
    { ...found },
    `the pod has IPv6 addresses and ${optionNames.ipv6} is off: they pass the proxy by`,
  );
}
