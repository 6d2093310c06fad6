// The results as tables, in Markdown that can also be read as it is: pure.
import { type Result, toInit, toLeast } from "./result.ts";
import type { Target } from "./targets.ts";

/** All results, those of the same action together. */
export function resultTable(results: readonly Result[]): string {
  const actions = [...new Set(results.map(({ action }) => action))];
  const ordered = actions.flatMap((action) => results.filter((result) => result.action === action));
  const rows = ordered.map((result) => {
    const { action, families, backend, source, way, summary } = result;
    const { wallMs, cpuMs, rssMb } = summary;
    return [
      action,
      families,
      backend,
      source,
      way,
      wallMs.median.toFixed(1),
      wallMs.p95.toFixed(1),
      cpuMs.median.toFixed(1),
      rssMb.toFixed(0),
      shown(way === "bare" ? undefined : toLeast(results, result)),
      shown(way === "bare" ? undefined : toInit(results, result)),
    ];
  });
  return markdown(head, rows);
}

const head = [
  "what",
  "pod",
  "backend",
  "pod's facts",
  "way",
  "ms",
  "p95",
  "CPU ms",
  "RSS MB",
  "× least",
  "× init",
];

/** The aims, and whether they were reached. */
export function targetTable(targets: readonly Target[]): string {
  const rows = targets.map(({ name, value, limit }) => {
    const reached = value === undefined ? "" : value <= limit ? "yes" : "no";
    return [name, value === undefined ? "" : String(value), String(limit), reached];
  });
  return markdown(["aim", "found", "at most", "reached"], rows);
}

/** A Markdown table whose columns are all as wide as their widest cell; numbers stand at the right. */
export function markdown(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [header, ...rows];
  const widths = header.map((_, column) =>
    Math.max(3, ...cells.map((row) => lengthAt(row, column))),
  );
  const numeric = header.map((_, column) =>
    rows.every((row) => /^[\d.]*$/.test(row[column] ?? "")),
  );
  const line = (row: readonly string[]) =>
    `| ${widths.map((width, column) => pad(row[column] ?? "", width, numeric[column] ?? false)).join(" | ")} |`;
  const rule = widths.map((width, column) =>
    numeric[column] ? `${"-".repeat(width + 1)}:` : "-".repeat(width + 2),
  );
  return [line(header), `|${rule.join("|")}|`, ...rows.map(line), ""].join("\n");
}

function lengthAt(row: readonly string[], column: number): number {
  return row[column]?.length ?? 0;
}

function pad(text: string, width: number, right: boolean): string {
  return right ? text.padStart(width) : text.padEnd(width);
}

function shown(value: number | undefined): string {
  return value === undefined ? "" : value.toFixed(2);
}
