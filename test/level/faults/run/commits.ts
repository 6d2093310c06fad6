// Death between two commits of one load, in a live pod: a ruleset of one table takes the place of a ruleset of two others. At
// each such moment the old one or the new one captures, all of it; whoever comes next ends complete, or leaves nothing.
import { compare } from "../../../../src/netfilter/compare.ts";
import { converge } from "../../../../src/netfilter/converge/converge.ts";
import { jobFor } from "../../../../src/netfilter/converge/job.ts";
import type { Session } from "../../../../src/netfilter/converge/left-out.ts";
import { readTables, type Shown, shownIn } from "../../../../src/netfilter/converge/readout.ts";
import { removeOwn } from "../../../../src/netfilter/converge/remove.ts";
import { ownOf, replacing } from "../../../../src/netfilter/own.ts";
import { renderRestore } from "../../../../src/netfilter/restore.ts";
import type { Ruleset } from "../../../../src/netfilter/table.ts";
import { type Backend, backends, type Family, families } from "../../../../src/netfilter/table.ts";
import {
  freshTransaction,
  holdsAny,
  type Transaction,
  transactionTo,
} from "../../../../src/netfilter/transaction.ts";
import { execAsync } from "../../../../src/netns/exec-async.ts";
import { closeNetns, openNetns } from "../../../../src/netns/path.ts";
import { makeNetns } from "../../../lab/netns.ts";
import { openSession } from "../../../lab/session.ts";
import { mangleCapture, markingCapture, natCapture } from "../../../lab/several-tables.ts";

/** What was found: at how many moments a death was played, and all that was wrong. */
export type Found = { readonly deaths: number; readonly faults: readonly string[] };

/** What comes after the death. */
type Next = "converge" | "remove";

/** One death: of what was to become what, how many commits were loaded by then, and what comes next. */
type Death = {
  readonly backend: Backend;
  readonly family: Family;
  readonly from: Ruleset | undefined;
  readonly to: Ruleset;
  readonly commits: number;
  readonly next: Next;
};

/** Plays a death behind each number of commits, from nothing and from another ruleset, in all backends and families. */
export async function dieBetweenCommits(): Promise<Found> {
  const faults: string[] = [];
  const all = deaths();
  for (const death of all) {
    const { backend, family, from, to, commits, next } = death;
    const [old, now] = [from, to].map((one) => one?.tables.map(({ name }) => name).join("+"));
    const where = `${backend}, ${family}, ${old ?? "nothing"} to ${now}, after ${commits} commits, then ${next}`;
    faults.push(...(await die(death)).map((fault) => `${where}: ${fault}`));
  }
  return { deaths: all.length, faults };
}

function deaths(): Death[] {
  return backends.flatMap((backend) =>
    families.flatMap((family) => {
      const [mangle, nat] = [mangleCapture(family), natCapture(family)];
      const marking = markingCapture(family);
      const ways = [
        { from: undefined, to: nat },
        { from: mangle, to: nat },
        { from: nat, to: mangle },
        // Mangle is in both: what captured there may not go with what is new there.
        { from: mangle, to: marking },
        { from: marking, to: mangle },
      ];
      return ways.flatMap((way) =>
        [0, 1, 2, 3, 4].flatMap((commits) =>
          (["converge", "remove"] as const).map((next) => {
            return { backend, family, ...way, commits, next };
          }),
        ),
      );
    }),
  );
}

async function die({ backend, family, from, to, commits, next }: Death): Promise<string[]> {
  const netns = makeNetns("commits");
  const opened = openNetns({ path: netns.path, allowOwn: false });
  try {
    const session = await openSession(execAsync, opened, { backend, family });
    if (from !== undefined) await converge(session, [from]);
    const wanted = from === undefined ? to : replacing(to, [from]);
    const transaction =
      from === undefined
        ? freshTransaction(to)
        : transactionTo(wanted, (await look(session, wanted)).tables);
    load(session, transaction.slice(0, commits));
    const faults = judge(await look(session, wanted), { from, to });
    return [...faults, ...(await thenJudge(session, { from, to, next }))];
  } finally {
    closeNetns(opened);
    netns.remove();
  }

  // One load of the first commits: the kernel takes each for itself.
  function load({ choice }: Session, transaction: Transaction): void {
    const restore = choice.tools.get(family)?.restore ?? "";
    if (transaction.length > 0) netns.run(restore, ["--noflush"], renderRestore(transaction));
  }
}

async function look({ client, place, choice }: Session, ruleset: Ruleset): Promise<Shown> {
  const [outcome] = await client(place, [jobFor(choice, ruleset)], 20_000);
  if (outcome === undefined) throw new Error("nothing was read");
  const shown = shownIn(readTables(outcome), ruleset.tables);
  if (shown instanceof Error) throw shown;
  return shown;
}

type Way = Pick<Death, "from" | "to">;

// In a live pod one of them captures; from nothing, nat captures only with what it needs in raw.
function judge({ tables }: Shown, { from, to }: Way): string[] {
  const isNew = compare(to, tables).length === 0;
  if (from !== undefined) {
    const isOld = compare(from, tables).length === 0;
    return isOld || isNew ? [] : ["neither the old ruleset nor the new one captures"];
  }
  const [raw, nat] = to.tables.map((own) => {
    return compare({ ...to, tables: [own] }, tables).length === 0;
  });
  return nat === true && raw !== true ? ["nat captures without what it needs in raw"] : [];
}

async function thenJudge(
  session: Session,
  { from, to, next }: Way & Pick<Death, "next">,
): Promise<string[]> {
  const former = from === undefined ? [] : [from];
  const wanted = replacing(to, former);
  const own = ownOf([to, ...former]);
  if (next === "converge") {
    await converge(session, [wanted]);
    const { tables } = await look(session, wanted);
    return compare(wanted, tables).map(({ kind, found }) => `converge leaves ${kind} ${found}`);
  }
  const { left, husks } = await removeOwn(session, [to.family], own);
  const { tables } = await look(session, { ...wanted, tables: own.map(named) });
  const rest = holdsAny(own, tables) ? ["a removal leaves rules of ours"] : [];
  return [...left, ...husks, ...rest];
}

function named({ name }: { readonly name: "raw" | "mangle" | "nat" }) {
  return { name, chains: [], placed: [] };
}
