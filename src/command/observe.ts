// What CHECK sees of a netns: both backends' tables, and nft's own view where nft is on the node. Edge; changes nothing.
// One child; a second one only where a rule of nft's own keeps iptables-save from showing all tables in one.
import { CniError, errorCode } from "../cni/error.ts";
import { standFor } from "../mesh/linkerd-rules.ts";
import type { BackendChoice } from "../netfilter/choice.ts";
import { type Job, makeClient, type Outcome } from "../netfilter/client.ts";
import type { Drift } from "../netfilter/compare.ts";
import { isUndecodable, readTable, restoreJob } from "../netfilter/converge.ts";
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
  const hidden = wanted.optional.filter((family) =>
    all.some((one) => isHidden(one, family, choice)),
  );
  const rulesets = wanted.rulesets.filter(({ family }) => !hidden.includes(family));
  const first = all.filter(({ job }) => !hidden.includes(job.family));
  requireShown(first, choice);
  const broken = first.filter(isUndecodable).map(({ job }) => natAlone(job));
  const second = broken.length === 0 ? [] : await client(netns, broken, call.remainingMs());
  const saves = withNat(first.map(readSave), second.map(readSave));
  const sight: Sight = { saves, native: readNative(call, all) };
  const drifts = compareSight({ rulesets, backend: choice.backend, standFor }, sight);
  return { drifts, presence: all[0]?.presence };
}

function isHidden(outcome: Outcome, family: Family, { backend }: BackendChoice): boolean {
  if (outcome.job.family !== family || outcome.job.backend !== backend) return false;
  // That may still be shown, by itself.
  if (isUndecodable(outcome)) return false;
  const table = readTable(outcome);
  return table instanceof Error || table.unverifiable !== undefined;
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
  const read = (name: "nat" | "raw" | "mangle") => readTable(outcome, name);
  return {
    family,
    backend,
    tables: { nat: read("nat"), raw: read("raw"), mangle: read("mangle") },
  };
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

function requireShown(outcomes: readonly Outcome[], { backend }: BackendChoice): void {
  for (const outcome of outcomes.filter(({ job }) => job.backend === backend)) {
    const table = readTable(outcome);
    if (!(table instanceof Error)) continue;
    const { tools, family } = outcome.job;
    throw new CniError(
      errorCode.tryAgainLater,
      `${tools.save} (${backend}, ${family}) could not show the nat table: ${table.message}`,
      { details: "whether the redirect is in place is not known" },
    );
  }
}
