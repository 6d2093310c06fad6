// One family on its way to its ruleset: what came of a try, and what to try next. Does nothing itself.
import type { CniError } from "../../cni/error.ts";
import { ownChains } from "../../mesh/linkerd/names.ts";
import { printable } from "../../text/printable.ts";
import type { Outcome } from "../iptables/client.ts";
import { failedChain, readFailure, type ToolFailure } from "../iptables/failure.ts";
import { fitting, jumpsInto, oddJumps, plan, planFresh, type Transaction } from "../plan.ts";
import { longestRestoreBytes, renderRestore } from "../restore.ts";
import { holdsAny, type Ruleset, type Table } from "../table.ts";

/** So many times the same, with nobody else at the table: no further try will do. */
const sameMax = 3;

/** One family on its way to its ruleset. */
export type Progress = {
  readonly ruleset: Ruleset;
  /** What is left to do; empty once the table has been read back and is right. */
  transaction: Transaction;
  failure: Failure | undefined;
  /** How often in a row the same text met the same refusal, and left the table as it was. */
  same: number;
  /** The transaction was planned from what we saw. */
  looked: boolean;
  /** Somebody else changed the table while we were at it. */
  disturbed: boolean;
  /** The own chains were made by us, just now, where there were none. */
  created: boolean;
  changed: boolean;
  /** Whether a text of ours was loaded is not known: its tool was ended, by the deadline or by somebody. */
  doubtful: boolean;
  unmasked: boolean;
  /** It is left out: why its tools refused, or that IPv6 is not possible in the netns. */
  left: CniError | "absent" | undefined;
};

export type Failure = ToolFailure & {
  readonly program: string;
  readonly chain: string;
  readonly isUnverifiable?: true;
};

/** Before the first try, which does not look: on a fresh netns that is all it takes, and elsewhere (-N) nothing happens. */
export function begin(ruleset: Ruleset): Progress {
  return {
    ruleset,
    transaction: planFresh(ruleset),
    failure: undefined,
    same: 0,
    looked: false,
    disturbed: false,
    created: false,
    changed: false,
    doubtful: false,
    unmasked: false,
    left: undefined,
  };
}

/** Takes in what came of a try, with the table as it was read after it. */
export function advance(progress: Progress, outcome: Outcome, table: Table | Error): void {
  const { transaction, failure: before, looked } = progress;
  const fresh = isFresh(transaction);
  progress.unmasked ||= outcome.unmasked === true;
  if (outcome.restoreStatus === 0) {
    progress.changed = true;
    progress.created ||= fresh;
  }
  if (!(table instanceof Error)) {
    progress.transaction = planFor(progress.ruleset, table);
    progress.looked = true;
  } else if (outcome.restoreStatus === 0 || fresh) {
    // Loaded, or met something of ours, but not seen: the next try only looks.
    progress.transaction = [];
  }
  progress.failure = failureOf(outcome, table, fresh) ?? obstacleTo(progress, outcome, table);
  if (progress.failure === undefined) {
    // Loaded, and not there when we looked.
    progress.disturbed ||= outcome.restoreStatus === 0 && progress.transaction.length > 0;
    progress.same = 0;
    return;
  }
  const unchanged = renderRestore(transaction) === renderRestore(progress.transaction);
  progress.disturbed ||= (looked && !unchanged) || isOutdated(outcome);
  progress.same = progress.failure.said === before?.said && unchanged ? progress.same + 1 : 1;
}

// Where nothing of ours is, the text that refuses to meet anything of ours: what it makes is known to be of our making.
function planFor(ruleset: Ruleset, table: Table): Transaction {
  const names = ruleset.chains.map(({ name }) => name);
  if (!holdsAny(table, names)) return planFresh(ruleset);
  return fitting(plan(ruleset, table), longestRestoreBytes);
}

/** The text that refuses to meet anything of ours. */
export function isFresh(transaction: Transaction): boolean {
  return transaction[0]?.do === "create-chain";
}

// A refusal of the first text because our chains are there already is what that text is for.
function failureOf(outcome: Outcome, table: Table | Error, fresh: boolean): Failure | undefined {
  const { restoreStatus, saveStatus, stderr } = outcome;
  const { restore, save } = outcome.job.tools;
  const where = { program: restoreStatus === 0 ? save : restore, chain: failedChain(stderr) };
  if (!(table instanceof Error) && table.unverifiable !== undefined) {
    const said = table.unverifiable;
    const advice = said.startsWith("its text ") ? hiddenAdvice : nativeAdvice;
    const hidden = { kind: "unsupported", said, advice } as const;
    return { ...hidden, program: restore, chain: "", isUnverifiable: true };
  }
  if (saveStatus !== 0) return { ...readFailure(restoreStatus || saveStatus, stderr), ...where };
  if (table instanceof Error) {
    return { kind: "unknown", said: table.message, advice: "", program: save, chain: "" };
  }
  if (restoreStatus === 0) return undefined;
  if (fresh && holdsAny(table, ownNames(outcome.job.restore))) return undefined;
  const failure = { ...readFailure(restoreStatus, stderr, outcome.job.restore), ...where };
  return isOutdated(outcome) ? { ...failure, kind: "transient", advice: outdatedAdvice } : failure;
}

// The text names what is no longer there, or makes what is there by now: somebody was at the table after our look.
// legacy gives only the line; what the kernel has against a rule it blames on COMMIT.
function isOutdated({ job, restoreStatus, stderr }: Outcome): boolean {
  if (restoreStatus === 0) return false;
  const line = Number(failedLine.exec(stderr)?.[1] ?? Infinity);
  const commit = job.restore.split("\n").indexOf("COMMIT") + 1;
  return line < commit || outdated.test(stderr);
}

const failedLine =
  /^\S*tables-restore: line (\d+) failed(?:: No chain\/target\/match by that name\.)?$/m;

const outdated = new RegExp(
  [
    "failed: (?:Chain already exists|Bad rule)",
    ...ownChains.map((name) => `Couldn't load target .${name}'|Chain '${name}' does not exist`),
  ].join("|"),
);

const outdatedAdvice = "another program is changing the rules; try again";

const nativeAdvice =
  "rules written by nft itself stand in the nat table, so iptables cannot show it; remove them or use another table";

const hiddenAdvice =
  "whether all traffic would be redirected cannot be proven: somebody wrote rules in this pod's nat table; remove them";

// Jumps into our chains that stand in the way of the ruleset, though nothing was refused.
function obstacleTo(
  { ruleset, transaction }: Progress,
  { job }: Outcome,
  table: Table | Error,
): Failure | undefined {
  if (table instanceof Error) return undefined;
  const names = ruleset.chains.map(({ name }) => name);
  const where = { program: job.tools.restore, chain: "" };
  const [odd] = transaction.length > 0 ? [] : names.flatMap((name) => oddJumps(name, table));
  if (odd !== undefined) {
    const said = `a rule of someone else's leads into our chain: ${printable(odd)}`;
    const advice = "it has words that we do not write; remove it by hand";
    return { kind: "unsupported", said, advice, ...where, isUnverifiable: true };
  }
  if (!holdsAny(table, names) || plan(ruleset, table).length === transaction.length) {
    return undefined;
  }
  const count = names.flatMap((name) => jumpsInto(name, table)).length;
  const said = `${count} rules lead into our chains, more than can be taken out at once`;
  const advice = "another program keeps adding them; remove them by hand";
  return { kind: "transient", said, advice, ...where };
}

function ownNames(restore: string): string[] {
  return [...restore.matchAll(/^-N (\S+)$/gm)].map(([, name]) => name ?? "");
}

/** Read back, and right; or left out. */
export function isDone({ transaction, failure, left }: Progress): boolean {
  return left !== undefined || (transaction.length === 0 && failure === undefined);
}

/** No further try will do. */
export function isRefused({ failure, same, disturbed }: Progress): boolean {
  if (failure?.kind === "unsupported") return true;
  return failure?.kind === "unknown" && same >= sameMax && !disturbed;
}
