// What a job read: the tables, each or why it could not be read. The one place that takes a tool's failure for what it is.
import { traitsOf } from "../backend.ts";
import { readFailure } from "../iptables/failure.ts";
import type { Outcome } from "../iptables/job.ts";
import type { Tables } from "../own.ts";
import { type SavedTables, SaveSyntaxError } from "../save.ts";
import { emptyTable, type OwnTable, type Table, type TableName } from "../table.ts";

/** The tables that a job read, each or why it could not be read; and whether others are in the way (see SavedTables). */
export type Readout = Readonly<Record<TableName, Table | Error>> & Pick<SavedTables, "isMixed">;

/** All that a job read. */
export function readTables(outcome: Outcome): Readout {
  const undecoded = outcome.saveStatus === 0 ? null : undecodable.exec(outcome.stderr);
  if (undecoded !== null) {
    return same({ ...emptyTable, unverifiable: `${undecoded[0]}.` }, true);
  }
  if (outcome.saveStatus !== 0) {
    return same(new Error(readFailure(outcome.saveStatus, outcome.stderr).said));
  }
  try {
    return traitsOf(outcome.job.backend).read(outcome.saved);
  } catch (error) {
    if (error instanceof SaveSyntaxError) return same(error);
    throw error;
  }
}

function same(read: Table | Error, isMixed = false): Readout {
  return { nat: read, raw: read, mangle: read, isMixed };
}

// Some rule of nft's own (`meta skuid 5`) ends iptables-save, which does not say where it stands: the tool works, and the
// tables cannot be shown.
const undecodable = /Parsing nftables rule failed|Cannot decode all rules provided by kernel/;

/** The tables that count, all of them read. */
export type Shown = {
  readonly tables: Tables;
  /** Why one of them is not shown whole: then any of them may hold more. */
  readonly unverifiable?: string;
};

/** What a job read of the tables that count, or why one of them could not be read. */
export function shownIn(
  readout: Readout,
  counting: readonly Pick<OwnTable, "name">[],
): Shown | Error {
  const { raw, mangle, nat } = readout;
  const found = counting.map(({ name }) => readout[name]);
  const error = found.find((table) => table instanceof Error);
  if (error instanceof Error) return error;
  const doubts = found.flatMap((table) =>
    table instanceof Error ? [] : (table.unverifiable ?? []),
  );
  // A line of one table may be the doing of a rule in another: of a single one, save shows no other.
  if (counting.length > 1 && readout.isMixed) doubts.push(mixedDoubt);
  const [unverifiable] = doubts;
  const tables = { raw: orEmpty(raw), mangle: orEmpty(mangle), nat: orEmpty(nat) };
  return unverifiable === undefined ? { tables } : { tables, unverifiable };
}

/** Why lines of several tables of ours are not believed: a rule of another table may be behind them. */
export const mixedDoubt =
  "its text cannot be trusted, for rules can be written so that they look like others";

// One that nobody counts on.
function orEmpty(table: Table | Error): Table {
  return table instanceof Error ? emptyTable : table;
}
