// What shall be redirected for the call's pod: the conf, then what the pod says, for the families that it has.
import type { PrevResult } from "../../cni/result.ts";
import type { Call } from "../../command/call.ts";
import { familiesOf, type Intent, wantedFamilies } from "../../mesh/linkerd/intent.ts";
import type { Family } from "../../netfilter/table.ts";
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
 * @throws CniError 7 for the conf, 103 for annotations that cannot be honoured, 11 or 103 when the pod cannot be read.
 */
export async function deriveIntent(call: Call, prevResult: PrevResult): Promise<Derived> {
  const { linkerd } = call.plugin;
  const wish = await wishFor(call);
  if (wish.kind === "skip") return wish;
  const intent = { ...wish.intent, families: wantedFamilies(linkerd.ipv6) };
  const { addresses } = prevResult;
  const named = addresses.length === 0 ? [] : familiesOf(addresses, true);
  if (!linkerd.ipv6 && named.includes("ipv6")) warnOfIpv6(call, { addresses });
  warnOfGaps(call, intent);
  return { kind: "intent", intent, named };
}

/** Warns of IPv6 that passes by because the conf says so; `found` shows that it is there. */
export function warnOfIpv6(call: Call, found: Readonly<Record<string, unknown>>): void {
  call.log.warn(
    { ...found },
    "the pod has IPv6 addresses and linkerd.ipv6 is off: they pass the proxy by",
  );
}

// What was asked for, and is seldom meant.
function warnOfGaps(call: Call, { families, excludeSubnets }: Intent): void {
  const all = excludeSubnets.filter(({ family, text }) => {
    return families.includes(family) && text.endsWith("/0");
  });
  if (all.length > 0) {
    const subnets = all.map(({ text }) => text);
    call.log.warn({ subnets }, "all sources are excluded: what comes in passes the proxy by");
  }
}
