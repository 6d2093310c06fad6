// What others wrote, as it is told.
import { expect, test } from "vitest";
import { few, printable } from "../../src/mesh/telling.ts";

const sentences: [sentence: string, told: string][] = [
  ['"80" is fine', '"80" is fine'],
  ["a\nb\u202e\u{1f600}", "a\\u000ab\\u202e\\ud83d\\ude00"],
  ["x".repeat(300), "x".repeat(300)],
  ["x".repeat(301), `${"x".repeat(150)} ... ${"x".repeat(100)}`],
  [`${"x".repeat(900)}end`, `${"x".repeat(150)} ... ${"x".repeat(97)}end`],
  ["\n".repeat(100), `${"\\u000a".repeat(25)} ... ${"\\u000a".repeat(17).slice(-100)}`],
];

test.each(sentences)("printable() tells %j so that it can be read", (sentence, told) => {
  expect(printable(sentence)).toBe(told);
});

test("few() tells ten, and how many more there are", () => {
  const names = (count: number) => Array.from({ length: count }, (_, i) => `n${i}`);
  expect(few([])).toBe("");
  expect(few(["a\n", "b"])).toBe("a\\u000a; b");
  expect(few(names(10))).toBe(names(10).join("; "));
  expect(few(names(100_000))).toBe(`${names(10).join("; ")}; and 99990 more`);
});
