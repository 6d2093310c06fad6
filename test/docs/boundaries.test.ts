// CONTRIBUTING's table of folders against the linter's rules: Biome is given a file in each folder that imports from all of them,
// and refuses exactly those that the folder's row does not name.
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execaSync } from "execa";
import { afterAll, expect, test } from "vitest";
import * as z from "zod";
import { root } from "../lab/plugin.ts";
import { tableIn } from "./readme.ts";

/** The folders that have boundaries, and those that each may use. */
const rows = folderRows(readFileSync(join(root, "CONTRIBUTING.md"), "utf8"));
const folders = rows.map(({ folder }) => folder);

function folderRows(contributing: string): { folder: string; uses: string[] }[] {
  const [, section = ""] = contributing.split("\n## Where things are\n");
  const table = tableIn(section.split("\n## ")[0] ?? "").slice(1);
  return table.flatMap(([names = "", , uses = ""]) => {
    const folder = /^`([a-z/]+)`$/.exec(names)?.[1];
    if (folder === undefined) return [];
    return [{ folder, uses: uses === "nothing" ? [] : uses.split(", ") }];
  });
}

const work = mkdtempSync(join(tmpdir(), "slc-boundaries-"));
afterAll(() => rmSync(work, { recursive: true, force: true }));

const reportSchema = z.object({
  diagnostics: z.array(
    z.object({
      category: z.string(),
      location: z.object({
        path: z.string(),
        start: z.object({ line: z.number() }),
      }),
    }),
  ),
});

/** By folder, those that a file in it may not import from. */
function refusals(): Map<string, string[]> {
  copyFileSync(join(root, "biome.json"), join(work, "biome.json"));
  for (const folder of folders) {
    mkdirSync(join(work, "src", folder), { recursive: true });
    const up = "../".repeat(folder.split("/").length);
    const imports = folders.map((name) => `import "${up}${name}/some.ts";\n`);
    writeFileSync(join(work, "src", folder, "probe.ts"), imports.join(""));
  }
  const biome = join(root, "node_modules/.bin/biome");
  const argv = ["lint", "--reporter=json", "--max-diagnostics=none", "--vcs-enabled=false", "src"];
  const { stdout } = execaSync(biome, argv, { cwd: work, reject: false });
  const { diagnostics } = reportSchema.parse(JSON.parse(stdout));
  const found = new Map(folders.map((folder) => [folder, [] as string[]]));
  for (const { category, location } of diagnostics) {
    if (!category.endsWith("noRestrictedImports")) continue;
    const folder = location.path.replace(/^src\/|\/probe\.ts$/g, "");
    found.get(folder)?.push(folders[location.start.line - 1] ?? "");
  }
  return found;
}

const refused = refusals();

test("the table has a row for each folder, and names no other", () => {
  expect(rows.flatMap(({ uses }) => uses).filter((name) => !folders.includes(name))).toEqual([]);
  expect(folders).toContain("netfilter/converge");
});

test.each(rows)("$folder may use what its row names, and nothing else", ({ folder, uses }) => {
  const others = folders.filter((name) => name !== folder && !uses.includes(name));
  expect(refused.get(folder)?.toSorted()).toEqual(others.toSorted());
});
