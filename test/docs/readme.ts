// README.md, taken apart: sections, tables, and blocks of code.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../lab/plugin.ts";

/** The text under a heading, up to the next of its kind. */
export function section(heading: string): string {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const [, text] = readme.split(`\n## ${heading}\n`);
  if (text === undefined) throw new Error(`README has no section ${heading}`);
  return text.split("\n## ")[0] ?? "";
}

/** The rows of the text's table, each as its cells; the heading is the first. */
export function tableIn(text: string): string[][] {
  const lines = text.split("\n").filter((line) => line.startsWith("|"));
  const rows = lines.map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  return rows.filter(([first = ""]) => !/^-+$/.test(first));
}

/** The blocks of code of a language. */
export function blocksIn(text: string, language: string): string[] {
  const found = text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm);
  return [...found].flatMap(([, of, code = ""]) => (of === language ? [code] : []));
}
