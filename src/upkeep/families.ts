// Decides for one netns which of the wanted address families are redirected and which are left out, and logs it.
import { type AttachmentRecord, familiesIn } from "../attachment/record.ts";
import { optionNames } from "../conf/names.ts";
import { familiesOf, type Intent, narrowed } from "../mesh/profile.ts";
import type { Left } from "../netfilter/converge/left-out.ts";
import { lookAt } from "../netfilter/iptables/client.ts";
import { isSpoken, type Presence } from "../netfilter/iptables/presence.ts";
import { type Family, families } from "../netfilter/table.ts";
import type { Netns } from "../netns/path.ts";
import type { FamilyDrift } from "./drift.ts";
import type { Task } from "./task.ts";

type Done = { readonly left: readonly Left[]; readonly presence: Presence | undefined };

/** The intent as it was carried out: without the families that were left out. */
export function withoutLeft(intent: Intent, left: readonly Left[]): Intent {
  return narrowed(intent, (family) => !left.some((one) => one.family === family));
}

/** Warns of a family that is not redirected: its tools do not work, or the conf does not want it although it is there. */
export function tellFamilies(task: Task, { left, presence }: Done): void {
  for (const { family, error } of left) {
    if (error === undefined) continue;
    task.log.warn(
      { family, err: error },
      `${family} is not redirected: its tools do not work here`,
    );
  }
  tellUnwanted(task, presence);
}

// What prevResult names is not looked for, and was told before.
function tellUnwanted(task: Task, presence: Presence | undefined): void {
  const found = presence?.evidence.get("ipv6") ?? "";
  if (isIpv6Off(task) && found !== "") warnOfIpv6(task, { found });
}

/** What is wanted of a netns. */
export type Plan = {
  /** For all families that are wanted; which of them the netns has shows when it is entered. */
  readonly intent: Intent;
  /** Those that must be redirected, whatever the netns shows; those that it speaks must besides. */
  readonly required: readonly Family[];
};

/** The intent for the families that an ADD would write to now; which of them it might leave out, if their tools did not work. */
export type Now = { readonly intent: Intent; readonly optional: readonly Family[] };

/** Looks what ADD would find; starts a child where not both families are required. */
export async function familiesNow(task: Task, netns: Netns, plan: Plan): Promise<Now> {
  const { intent, required } = plan;
  const looked = families.filter((family) => !required.includes(family));
  if (looked.length === 0) return { intent, optional: [] };
  const presence = await lookAt(task.deps, netns, { looked, timeoutMs: task.remainingMs() });
  tellUnwanted(task, presence);
  const possible = narrowed(intent, (family) => {
    return family === "ipv4" || required.includes(family) || presence.ipv6Possible;
  });
  const isOptional = (family: Family) => looked.includes(family) && !isSpoken(presence, family);
  return { intent: possible, optional: familiesOf(possible).filter(isOptional) };
}

/**
 * The families to watch for: wanted, and not redirected. A record of an older version does not tell; then the conf does.
 */
export function openFamilies(task: Task, record: AttachmentRecord): Family[] {
  const redirected = familiesIn(record);
  const wanted = record.open ?? task.settings.families;
  return wanted.filter((family) => !redirected.includes(family));
}

/** The open families that the netns speaks by now. */
export function spokenDrifts(
  open: readonly Family[],
  presence: Presence | undefined,
): FamilyDrift[] {
  const spoken = open.filter((family) => isSpoken(presence, family));
  return spoken.map((family) => ({
    kind: "open-family",
    family,
    expected: "no address and no route, since it is not redirected",
    found: presence?.evidence.get(family) ?? "what could not be looked at",
  }));
}

/** True where the conf does not want IPv6 redirected. */
export function isIpv6Off({ settings }: Task): boolean {
  return !settings.families.includes("ipv6");
}

/** Warns of IPv6 that passes by because the conf says so; `found` shows that it is there. */
export function warnOfIpv6({ log }: Task, found: Readonly<Record<string, unknown>>): void {
  log.warn(
    { ...found },
    `the pod has IPv6 addresses and ${optionNames.ipv6} is off: they pass the proxy by`,
  );
}
