// Whole numbers as users write them.
import { expect, test } from "vitest";
import { readInteger } from "../../src/redirect/integer.ts";

const bounds = { least: 0, most: 4_294_967_294 };

const good: [word: number | string, value: number][] = [
  ["0", 0],
  ["00", 0],
  [0, 0],
  [-0, 0],
  [4143, 4143],
  ["4143", 4143],
  ["04143", 4143],
  ["0000004143", 4143],
  ["4294967294", 4_294_967_294],
];

test.each(good)("readInteger() reads %j as %i", (word, value) => {
  expect(readInteger(word, bounds)).toBe(value);
});

const bad: (number | string)[] = [
  "",
  " ",
  "1 ",
  " 1",
  "+1",
  "-1",
  "-0",
  "1.0",
  "1e3",
  "0x10",
  "0b1",
  "1_0",
  "1,0",
  "٣",
  "１",
  "1\n",
  "00000000001",
  "4294967295",
  "99999999999999999999",
  "NaN",
  "Infinity",
  -1,
  1.5,
  1e21,
  Number.NaN,
  Number.POSITIVE_INFINITY,
];

test.each(bad)("readInteger() does not read %j", (word) => {
  expect(readInteger(word, bounds)).toBe(undefined);
});

test("readInteger() holds to its bounds", () => {
  const read = (word: string) => readInteger(word, { least: 1, most: 65_535 });
  expect(["0", "1", "65535", "65536"].map(read)).toEqual([undefined, 1, 65_535, undefined]);
});
