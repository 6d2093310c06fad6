// What others wrote, as it is told.
import { expect, test } from "vitest";
import { few, fewOf } from "../../src/text/telling.ts";

test("few() tells ten, and how many more there are", () => {
  const names = (count: number) => Array.from({ length: count }, (_, i) => `n${i}`);
  expect(few([])).toBe("");
  expect(few(["a\n", "b"])).toBe("a\\u000a; b");
  expect(few(names(10))).toBe(names(10).join("; "));
  expect(few(names(100_000))).toBe(`${names(10).join("; ")}; and 99990 more`);
});

test("fewOf() gives all lines where they are few", () => {
  expect(fewOf([])).toEqual([]);
  expect(fewOf(["a", "b"])).toEqual(["a", "b"]);
  const most = Array.from({ length: 24 }, (_, i) => `line ${i}`);
  expect(fewOf(most)).toEqual(most);
});

test("fewOf() says how many more there are", () => {
  const many = Array.from({ length: 50_000 }, (_, i) => `line ${i}`);
  expect(fewOf(many)).toEqual([...many.slice(0, 24), "and 49976 more"]);
});

test("fewOf() stays short, also where JSON makes lines longer", () => {
  const quotes = Array.from({ length: 24 }, () => '"'.repeat(300));
  const few = fewOf(quotes);
  expect(JSON.stringify(few).length).toBeLessThan(6_200);
  expect(few.at(-1)).toBe(`and ${24 - (few.length - 1)} more`);
});
