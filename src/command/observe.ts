// What CHECK sees of a netns: both backends' tables, and nft's own view where nft is on the node. Edge; changes nothing.
// One child; a second one only where a rule of nft's own keeps iptables-save from showing all tables in one.
import { CniError, errorCode } from "../cni/error.ts";
import { standFor } from "../mesh/linkerd-rules.ts";
import type { BackendChoice } from "../netfilter/choice.ts";
import { type Job, makeClient, type Outcome } from "../netfilter/client.ts";
import type { Drift } from "../netfilter/compare.ts";
import { isUndecodable, readTables, restoreJob } from "../netfilter/converge.ts";
import type { Presence } from "../netfilter/presence.ts";
import { compareSight, type Save, type Sight } from "../netfilter/sight.ts";
import { type Family, otherThan, type Ruleset } from "../netfilter/table.ts";
import type { Netns } from "../netns/path.ts";
import type { Call } from "./call.ts";
import { looksInto } from "./look.ts";
import { readNative } from "./native.ts";

/** What a netns should hold, and through which backend it was written. */
export type Wanted = {
  readonly rulesets: readonly Ruleset[];
  readonly choice: BackendChoice;
  /** Families that are not redirected, and must be once the netns speaks them. */
  readonly open: readonly Family[];
  /** Those that ADD would leave out where their tools do not show the table. */
  readonly optional: readonly Family[];
};

/** All drifts of a netns, and what it has of the open families. */
export type Seen = { readonly drifts: Drift[]; readonly presence: Presence | undefined };

/**
 * Looks for all drifts of a netns; there are none when it is redirected as it should be.
 * @throws CniError 11 when a table could not be read, which is no drift.
 */
export async function observe(call: Call, netns: Netns, wanted: Wanted): Promise<Seen> {
  const { choice, open } = wanted;
  const client = makeClient(call.deps, open);
  const all = await client(netns, await jobsFor(call, wanted), call.remainingMs());
  // Each text once: it may be long.
  const looks = all.map((outcome): Look => ({ outcome, save: readSave(outcome) }));
  const hidden = wanted.optional.filter((family) =>
    looks.some((one) => isHidden(one, family, choice)),
  );
  const rulesets = wanted.rulesets.filter(({ family }) => !hidden.includes(family));
  const first = looks.filter(({ save }) => !hidden.includes(save.family));
  requireShown(first, choice);
  const undecodable = first.filter(({ outcome }) => isUndecodable(outcome));
  const broken = undecodable.map(({ outcome }) => natAlone(outcome.job));
  const second = broken.length === 0 ? [] : await client(netns, broken, call.remainingMs());
  const seen = first.map(({ save }) => save);
  const saves = withNat(seen, second.map(readSave));
  const sight: Sight = { saves, native: readNative(call, all) };
  const drifts = compareSight({ rulesets, backend: choice.backend, standFor }, sight);
  return { drifts, presence: all[0]?.presence };
}

/** A look, and what was read of it. */
type Look = { readonly outcome: Outcome; readonly save: Save };

function isHidden({ outcome, save }: Look, family: Family, { backend }: BackendChoice): boolean {
  if (save.family !== family || save.backend !== backend) return false;
  // That may still be shown, by itself.
  if (isUndecodable(outcome)) return false;
  const { nat } = save.tables;
  return nat instanceof Error || nat.unverifiable !== undefined;
}

async function jobsFor(call: Call, { rulesets, choice }: Wanted): Promise<Job[]> {
  const own = rulesets.map(({ family }) => restoreJob(choice, family, []));
  const others = await looksInto(call, otherThan(choice.backend), rulesets);
  const native = call.deps.find("nft");
  if (native === undefined) {
    call.log.debug({}, "nft is not on the node: chains of nft's own are not seen");
  }
  return [...own, ...others].map((job, i) => {
    const asking = i === 0 && native !== undefined ? { native } : {};
    return { ...job, table: "all", ...asking };
  });
}

// A rule of nft's own in some table ends the save of all; the nat table may be shown by itself.
function natAlone({ family, backend, tools, restore }: Job): Job {
  return { family, backend, tools, restore };
}

function readSave(outcome: Outcome): Save {
  const { family, backend } = outcome.job;
  return { family, backend, tables: readTables(outcome) };
}

// What the second look showed of nat, beside what the first one said of the other tables.
function withNat(saves: readonly Save[], second: readonly Save[]): Save[] {
  return saves.map((save) => {
    const again = second.find(({ family, backend }) => {
      return family === save.family && backend === save.backend;
    });
    return again === undefined
      ? save
      : { ...save, tables: { ...save.tables, nat: again.tables.nat } };
  });
}

function requireShown(looks: readonly Look[], { backend }: BackendChoice): void {
  for (const { outcome, save } of looks.filter((look) => look.save.backend === backend)) {
    const table = save.tables.nat;
    if (!(table instanceof Error)) continue;
    const { tools, family } = outcome.job;
    throw new CniError(
      errorCode.tryAgainLater,
      `${tools.save} (${backend}, ${family}) could not show the nat table: ${table.message}`,
      { details: "whether the redirect is in place is not known" },
    );
  }
}
