// Renders a transaction as the text that iptables-restore --noflush takes: for each table, what is done in it and one COMMIT.
import type { Step } from "./plan.ts";
import { fitting, type Transaction } from "./transaction.ts";

/**
 * The text that fits into one argument (MAX_ARG_STRLEN, less a little). About 600 rules: a packet walks them one by one,
 * so who needs more needs another plan.
 */
export const longestRestoreBytes = 128 * 1024 - 1;

/** The restore text of a transaction: ASCII, for so are all words of ours. "" where there is nothing to do. */
export function renderRestore(transaction: Transaction): string {
  return transaction
    .flatMap(({ table, steps }) => [`*${table}`, ...steps.map(renderStep), "COMMIT"])
    .map((line) => `${line}\n`)
    .join("");
}

/** As much of a transaction as one load takes (see fitting). */
export function loadable(transaction: Transaction): Transaction {
  return fitting(transaction, longestRestoreBytes, (some) => renderRestore(some).length);
}

function renderStep(step: Step): string {
  switch (step.do) {
    case "create-chain":
      return `-N ${step.chain}`;
    case "reset-chain":
      return `:${step.chain} - [0:0]`;
    case "append":
      return step.rule;
    case "insert":
      return step.rule.replace(/^-A/, "-I");
    case "delete":
      return step.rule.replace(/^-A/, "-D");
    case "delete-chain":
      return `-X ${step.chain}`;
  }
}
