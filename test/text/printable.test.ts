// Text from outside, fit to be told: on one line, in ASCII, and no longer than it may be.
import { expect, test } from "vitest";
import { printable } from "../../src/text/printable.ts";

const texts: [when: string, text: string, told: string][] = [
  ["it is plain", 'a "b" \\ c', 'a "b" \\ c'],
  ["it breaks the line", "a\r\nb\t\u0000", "a\\u000d\\u000ab\\u0009\\u0000"],
  ["it turns the line around", "\u202eabc\u2066", "\\u202eabc\\u2066"],
  ["it looks like a blank", "a\u00a0b\u3000", "a\\u00a0b\\u3000"],
  ["it is beyond the first plane", "\u{1f600}", "\\ud83d\\ude00"],
  ["it colours a terminal", "\u001b[31m", "\\u001b[31m"],
  ["it just fits", "x".repeat(300), "x".repeat(300)],
  ["it is long", `a${"x".repeat(300)}b`, `a${"x".repeat(149)} ... ${"x".repeat(99)}b`],
  [
    "it is long when spelt out",
    "\u0007".repeat(100),
    `${"\\u0007".repeat(25)} ... ${"\\u0007".repeat(17).slice(-100)}`,
  ],
  [
    "it is very long",
    `${"a".repeat(5_000_000)}\n`,
    `${"a".repeat(150)} ... ${"a".repeat(94)}\\u000a`,
  ],
];

test.each(texts)("printable() tells a text when %s", (_, text, told) => {
  expect(printable(text)).toBe(told);
});
