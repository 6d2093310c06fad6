// Takes own chains out of a table that cannot be shown, or whose text cannot be trusted. Each load either works or changes
// nothing, and the kernel lets go of a chain only when nothing leads into it: so its answer is the proof that the text is
// not. Edge: works through the client.
import { actingIn } from "../own.ts";
import { planRemoval, type Step } from "../plan.ts";
import { loadable } from "../restore.ts";
import type { Family, OwnNames, Table } from "../table.ts";
import { jobFor } from "./job.ts";
import type { Session } from "./left-out.ts";

/** A family's table, as far as it was shown. */
export type Unseen = { readonly family: Family; readonly table: Table };

/** A chain, or a rule, that may still be there: the chain empty, which lets all traffic pass, or full for all we know. */
export type Kept = { readonly what: string; readonly isEmpty: boolean };

/** So many equal jumps are taken out: nobody has more but on purpose. */
const jumpsMax = 8;

/** Empties the chains of one table, takes our rules out of the kernel's own, and removes what the kernel lets go of. */
export async function removeBlindly(
  session: Session,
  { family, table }: Unseen,
  own: OwnNames,
): Promise<Kept[]> {
  const { name, chains, placed } = own;
  const load: Load = (steps) => loads(session, { family, name }, steps);
  const kept = await deleteActing(load, own);
  if (await hasNoChain(session, family, own)) return kept;
  // As if what was shown were true: it mostly is, ahead of the line that is wrong.
  const shown = stepsThatFit(planRemoval(own, table), own);
  const gone = (await load(shown)) ? shown.flatMap(deletedBy) : [];
  // Something that is not shown leads into a chain: what is shown is taken out at least.
  if (gone.length === 0) await load(shown.filter((step) => step.do !== "delete-chain"));
  for (const chain of chains.filter((one) => !gone.includes(one))) {
    // Makes it where it is not, which the last step takes back.
    const isEmpty = await load([{ do: "reset-chain", chain }]);
    await deleteAll(
      load,
      placed.filter((jump) => jump.endsWith(` -j ${chain}`)),
    );
    if (!(isEmpty && (await load([{ do: "delete-chain", chain }]))))
      kept.push({ what: chain, isEmpty });
  }
  return kept;
}

function stepsThatFit(steps: readonly Step[], { name }: OwnNames): Step[] {
  return loadable([{ table: name, steps }]).flatMap((commit) => commit.steps);
}

type Load = (steps: readonly Step[]) => Promise<boolean>;

/** As long as there are any. True when the last load was refused, which it is where there are no more. */
async function deleteAll(load: Load, rules: readonly string[]): Promise<boolean> {
  let isRefused = true;
  for (const rule of rules) {
    let count = 0;
    while (count < jumpsMax && (await load([{ do: "delete", rule }]))) count += 1;
    isRefused &&= count < jumpsMax;
  }
  return isRefused;
}

// That a deletion is refused proves nothing of a tool that refuses all: it must be able to put the rule there and take it out.
async function deleteActing(load: Load, own: OwnNames): Promise<Kept[]> {
  const kept: Kept[] = [];
  for (const rule of actingIn(own)) {
    const isRefused = await deleteAll(load, [rule]);
    const able: Step[] = [
      { do: "insert", rule },
      { do: "delete", rule },
    ];
    if (!(isRefused && (await load(able)))) kept.push({ what: rule, isEmpty: false });
  }
  return kept;
}

/**
 * True when a table holds nothing of these names, whatever its text says. Rules that act by themselves cannot be asked for
 * without taking them out: with such it is never known. Changes nothing.
 */
export async function isFreeOf(session: Session, family: Family, own: OwnNames): Promise<boolean> {
  return actingIn(own).length === 0 && (await hasNoChain(session, family, own));
}

// A load that makes the chains, and takes them back in the same breath, is refused by the first that is there. It changes
// nothing either way.
async function hasNoChain(
  session: Session,
  family: Family,
  { name, chains }: OwnNames,
): Promise<boolean> {
  if (chains.length === 0) return true;
  const made = chains.map((chain): Step => ({ do: "create-chain", chain }));
  const taken = chains.map((chain): Step => ({ do: "delete-chain", chain }));
  return await loads(session, { family, name }, [...made, ...taken]);
}

function deletedBy(step: Step): string[] {
  return step.do === "delete-chain" ? [step.chain] : [];
}

type Spot = Pick<Unseen, "family"> & Pick<OwnNames, "name">;

async function loads(
  { client, place, choice, remainingMs }: Session,
  { family, name }: Spot,
  steps: readonly Step[],
): Promise<boolean> {
  if (steps.length === 0) return false;
  const job = jobFor(choice, { family, tables: [{ name }] }, [{ table: name, steps }]);
  const outcomes = await client(place, [job], remainingMs());
  return outcomes.every(({ restoreStatus }) => restoreStatus === 0);
}
