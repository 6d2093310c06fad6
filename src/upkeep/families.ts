// What becomes of the families that a conf wants, in one netns: which are redirected, which are left out, and what is said of
// it. Serves ADD, simulate and CHECK.
import type { AttachmentRecord } from "../attachment/record.ts";
import type { Call } from "../command/call.ts";
import { familiesOf, type Intent, narrowed } from "../mesh/profile.ts";
import type { Left } from "../netfilter/converge/left-out.ts";
import { lookAt } from "../netfilter/iptables/client.ts";
import { isSpoken, type Presence } from "../netfilter/iptables/presence.ts";
import { type Family, families } from "../netfilter/table.ts";
import type { Netns } from "../netns/path.ts";
import { isIpv6Off, warnOfIpv6 } from "./pod/intent.ts";

type Done = { readonly left: readonly Left[]; readonly presence: Presence | undefined };

/** The intent as it was carried out: without the families that were left out. */
export function withoutLeft(intent: Intent, left: readonly Left[]): Intent {
  return narrowed(intent, (family) => !left.some((one) => one.family === family));
}

/** Warns of a family that is not redirected: its tools do not work, or the conf does not want it although it is there. */
export function tellFamilies(call: Call, { left, presence }: Done): void {
  for (const { family, error } of left) {
    if (error === undefined) continue;
    call.log.warn(
      { family, err: error },
      `${family} is not redirected: its tools do not work here`,
    );
  }
  tellUnwanted(call, presence);
}

// What prevResult names is not looked for, and was told before.
function tellUnwanted(call: Call, presence: Presence | undefined): void {
  const found = presence?.evidence.get("ipv6") ?? "";
  if (isIpv6Off(call) && found !== "") warnOfIpv6(call, { found });
}

type Work = {
  readonly netns: Netns;
  readonly intent: Intent;
  readonly named: readonly Family[];
};

/** The intent for the families that an ADD would write to now; which of them it might leave out, if their tools did not work. */
export type Now = { readonly intent: Intent; readonly optional: readonly Family[] };

/** Looks what ADD would find; starts a child where prevResult does not name both families. */
export async function familiesNow(call: Call, { netns, intent, named }: Work): Promise<Now> {
  const looked = families.filter((family) => !named.includes(family));
  if (looked.length === 0) return { intent, optional: [] };
  const presence = await lookAt(call.deps, netns, { looked, timeoutMs: call.remainingMs() });
  tellUnwanted(call, presence);
  const possible = narrowed(intent, (family) => {
    return family === "ipv4" || named.includes(family) || presence.ipv6Possible;
  });
  const isOptional = (family: Family) => looked.includes(family) && !isSpoken(presence, family);
  return { intent: possible, optional: familiesOf(possible).filter(isOptional) };
}

/**
 * The families to watch for: wanted, and not redirected. A record of an older version does not tell; then the conf does.
 */
export function openFamilies(call: Call, { intent, open }: Recorded): Family[] {
  const wanted = open ?? call.settings.families;
  return wanted.filter((family) => !intent.families.includes(family));
}

type Recorded = Pick<AttachmentRecord, "intent" | "open">;

/** A line for each open family that the netns speaks by now: nothing takes its traffic to the proxy. */
export function renderSpoken(open: readonly Family[], presence: Presence | undefined): string[] {
  return open
    .filter((family) => isSpoken(presence, family))
    .map((family) => {
      const found = presence?.evidence.get(family) ?? "what could not be looked at";
      return `open-family (${family}): expected no address and no route, since it is not redirected; found ${found}`;
    });
}
