// Reports what else was seen while rules were written: our rules in wrong places, and rules of others.
import { readTables, type Shown, shownIn } from "../netfilter/converge/readout.ts";
import { readFailure } from "../netfilter/iptables/failure.ts";
import type { Outcome } from "../netfilter/iptables/job.ts";
import { type Own, ownOf } from "../netfilter/own.ts";
import { foreignRedirects } from "../netfilter/shadow.ts";
import type { Ruleset, RuleText } from "../netfilter/table.ts";
import { holdsAny } from "../netfilter/transaction.ts";
import { printable } from "../text/printable.ts";
import { fewOf } from "../text/telling.ts";
import { hiddenWarning } from "./look.ts";
import type { Task } from "./task.ts";

/** True where it shows rules of ours. What others have there, or what is not shown, is only told. */
export function holdsOwn(task: Task, outcome: Outcome, rulesets: readonly Ruleset[]): boolean {
  const { backend, family } = outcome.job;
  const own = ownOf(rulesets);
  const shown = shownIn(readTables(outcome), own);
  if (shown instanceof Error) {
    // The other backend need not work on this node: then nothing of ours can be in it.
    const { kind, said } = readFailure(outcome.saveStatus, outcome.stderr);
    if (kind !== "unsupported") task.log.warn({ backend, family, said }, hiddenWarning);
    return false;
  }
  const said = shown.unverifiable;
  if (said !== undefined) task.log.warn({ backend, family, said }, hiddenWarning);
  const rules = fewOf(strangersIn(shown, own, rulesets).map((rule) => printable(rule)));
  if (rules.length > 0) task.log.warn({ backend, family, rules }, strangerWarning);
  return holdsAny(own, shown.tables);
}

function strangersIn({ tables }: Shown, own: Own, rulesets: readonly Ruleset[]): RuleText[] {
  const [first] = rulesets;
  const chains = own.flatMap((names) => names.chains);
  return first === undefined ? [] : foreignRedirects(tables.nat, chains, first.traffic);
}

const strangerWarning =
  "rules of someone else's redirect traffic in the other backend; which of the two wins is not ours to decide";
