// What others wrote, as it is told.
import { expect, test } from "vitest";
import { few } from "../../src/text/telling.ts";

test("few() tells ten, and how many more there are", () => {
  const names = (count: number) => Array.from({ length: count }, (_, i) => `n${i}`);
  expect(few([])).toBe("");
  expect(few(["a\n", "b"])).toBe("a\\u000a; b");
  expect(few(names(10))).toBe(names(10).join("; "));
  expect(few(names(100_000))).toBe(`${names(10).join("; ")}; and 99990 more`);
});
