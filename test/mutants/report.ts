// What came of the mutants: those that no test noticed, and the figures by folder. Pure: the report that Stryker writes
// (https://github.com/stryker-mutator/mutation-testing-elements, schema 2) in, text out.
import { dirname } from "node:path";
import * as z from "zod";

const reportSchema = z.object({
  files: z.record(
    z.string(),
    z.object({
      mutants: z.array(
        z.object({
          status: z.string(),
          mutatorName: z.string(),
          replacement: z.string().optional(),
          location: z.object({ start: z.object({ line: z.number(), column: z.number() }) }),
        }),
      ),
    }),
  ),
});

type Mutant = z.infer<typeof reportSchema>["files"][string]["mutants"][number] & {
  readonly file: string;
};

/** One that made the tests run for ever was noticed; one that made them impossible to run says nothing, and is left out. */
const noticed = ["Killed", "Timeout"];
const unnoticed: Readonly<Record<string, string>> = {
  Survived: "no test fails",
  NoCoverage: "no test comes here",
};

/**
 * Renders it: a line for each mutant that was not noticed, a table, and the figure.
 * @throws ZodError for a report of another form.
 */
export function renderReport(report: unknown): string {
  const { files } = reportSchema.parse(report);
  const mutants = Object.entries(files)
    .flatMap(([file, found]) => found.mutants.map((mutant): Mutant => ({ ...mutant, file })))
    .filter(({ status }) => noticed.includes(status) || status in unnoticed);
  const folders = new Set(mutants.map(({ file }) => dirname(file)));
  const rows = [...folders].toSorted().map((folder) => {
    const some = mutants.filter(({ file }) => dirname(file) === folder);
    return `| ${folder} | ${killedOf(some)} | ${some.length} | ${shareOf(some)} |`;
  });
  return [
    ...mutants
      .filter(({ status }) => status in unnoticed)
      .toSorted(byPlace)
      .map(lineOf),
    "",
    "| folder | killed | of | % |",
    "|---|---|---|---|",
    ...rows,
    "",
    `killed ${killedOf(mutants)} of ${mutants.length} mutants (${shareOf(mutants)} %)`,
    "",
  ].join("\n");
}

function byPlace(one: Mutant, other: Mutant): number {
  const [a, b] = [one.location.start, other.location.start];
  return one.file.localeCompare(other.file) || a.line - b.line || a.column - b.column;
}

function killedOf(mutants: readonly Mutant[]): number {
  return mutants.filter(({ status }) => noticed.includes(status)).length;
}

function shareOf(mutants: readonly Mutant[]): number {
  return Math.round((100 * killedOf(mutants)) / Math.max(1, mutants.length));
}

function lineOf({ file, location, mutatorName, replacement = "", status }: Mutant): string {
  const { line, column } = location.start;
  const code = replacement.replaceAll(/\s+/g, " ").slice(0, 80);
  return `${file}:${line}:${column} ${unnoticed[status]}: ${mutatorName} -> ${code}`;
}
