// The error for a record that a later release wrote: nothing in it is guessed at, and nothing of it is touched.
import { Fault } from "../fault.ts";
import { printable } from "../text/printable.ts";
import { version } from "../version.ts";
import { recordFormat } from "./record.ts";
import type { Newer } from "./record-text.ts";

/**
 * Of kind try-again: during an upgrade old and new work side by side for a moment, and the next try finds the new one.
 */
export class NewerRecordError extends Fault {
  constructor(name: string, newer: Newer) {
    const by = `sluice ${printable(newer.version, 60)}`;
    super(
      "try-again",
      `the record ${name} has format ${newer.format}, of ${by}; sluice ${version} reads formats up to ${recordFormat}`,
      { details: "upgrade sluice on this node; the record and its rules are left as they are" },
    );
    this.name = "NewerRecordError";
  }
}
