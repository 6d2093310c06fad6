// What came of a job, as the client gives it: for tests of what is made of it.
import type { Outcome } from "../../../src/netfilter/iptables/job.ts";
import { renderRestore } from "../../../src/netfilter/restore.ts";
import {
  builtinChains,
  type Table,
  type TableName,
  tableNames,
} from "../../../src/netfilter/table.ts";
import type { Transaction } from "../../../src/netfilter/transaction.ts";

/** Of a job that loaded this, and read all tables; without more, all went well and nothing is there. */
export function outcomeOf(transaction: Transaction, more: Partial<Omit<Outcome, "job">>): Outcome {
  return {
    job: {
      family: "ipv4",
      backend: "nft",
      tools: { restore: "iptables-nft-restore", save: "iptables-nft-save", waits: true },
      restore: renderRestore(transaction),
      table: "all",
    },
    restoreStatus: 0,
    saveStatus: 0,
    saved: "",
    stderr: "",
    ...more,
  };
}

/** What save prints of tables. */
export function savedOf(tables: Partial<Record<TableName, Table>>): string {
  return tableNames
    .flatMap((name) => {
      const table = tables[name];
      return table === undefined ? [] : [`*${name}`, ...linesOf(name, table), "COMMIT\n"];
    })
    .join("\n");
}

function linesOf(name: TableName, { chains }: Table): string[] {
  const builtin: readonly string[] = builtinChains[name];
  const declared = [...chains.keys()].map((chain) => {
    return `:${chain} ${builtin.includes(chain) ? "ACCEPT" : "-"} [0:0]`;
  });
  return [...declared, ...[...chains.values()].flat()];
}
