// What shall be redirected for the call's pod: the conf, then what the pod says, for the families that it has.
import type { PrevResult } from "../cni/result.ts";
import { readAddresses } from "../netns/addresses.ts";
import type { Netns } from "../netns/path.ts";
import { familiesOf, type Intent } from "../redirect/intent.ts";
import { type Call, lookingOf } from "./call.ts";
import { wishFor } from "./wish.ts";

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
  const wish = await wishFor(call);
  if (wish.kind === "skip") return wish;
  const { intent } = wish;
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
