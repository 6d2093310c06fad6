// Whose traffic is the proxy's own.
import { expect, test } from "vitest";
import { readGroup, readUser } from "../../src/redirect/owner.ts";

const users: [word: number | string, id: number | undefined][] = [
  [2102, 2102],
  ["02102", 2102],
  ["4294967294", 4_294_967_294],
  ["4294967295", undefined],
  [0, undefined],
  ["00", undefined],
  [-1, undefined],
  ["root", undefined],
];

test.each(users)("readUser() makes of %j: %s", (word, id) => {
  expect(readUser(word)).toBe(id);
});

const groups: [word: number | string, id: number | "none" | undefined][] = [
  [2102, 2102],
  ["002102", 2102],
  ["4294967294", 4_294_967_294],
  ["4294967295", undefined],
  [0, "none"],
  [-0, "none"],
  ["0", "none"],
  ["0000000000", "none"],
  [-1, "none"],
  ["-1", "none"],
  ["-01", undefined],
  ["-0", undefined],
  ["+0", undefined],
  ["0x0", undefined],
  [-2, undefined],
  ["", undefined],
];

test.each(groups)("readGroup() makes of %j: %s", (word, id) => {
  expect(readGroup(word)).toBe(id);
});
