// Lists, read entry by entry.
import { expect, test } from "vitest";
import { type Read, readList, trimBlanks, type Unreadable } from "../../src/redirect/list.ts";

const texts: [text: string, trimmed: string][] = [
  ["", ""],
  [" \t\r\n", ""],
  ["a", "a"],
  [" a b ", "a b"],
  ["\ta\r\n", "a"],
  ["\u00a0a\u00a0", "\u00a0a\u00a0"],
];

test.each(texts)("trimBlanks() makes %j to %j", (text, trimmed) => {
  expect(trimBlanks(text)).toBe(trimmed);
});

test("readList() gives what is good, what is not, and what is odd, each entry once", () => {
  const read = (entry: string): Read<string> | Unreadable => {
    if (entry === "odd") return { value: "even", note: "odd it is" };
    return entry === "" || entry === "x" ? { problem: `"${entry}" is bad` } : { value: entry };
  };
  expect(readList([" b", "x", "a", "odd", "b ", "", "x"], read)).toEqual({
    values: ["b", "a", "even"],
    problems: ['"x" is bad', '"" is bad'],
    notes: ["odd it is"],
  });
  expect(readList([], read)).toEqual({ values: [], problems: [], notes: [] });
});
