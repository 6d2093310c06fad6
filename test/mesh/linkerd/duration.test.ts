// Durations in Go's spelling, as the injector reads them.
import { expect, test } from "vitest";
import { readSeconds } from "../../../src/mesh/linkerd/duration.ts";

const good: [text: string, seconds: number][] = [
  ["0", 0],
  ["+0", 0],
  ["-0s", 0],
  ["0s", 0],
  ["999ms", 0],
  ["999999999ns", 0],
  ["1s", 1],
  ["+30s", 30],
  ["1.5h", 5_400],
  ["2h45m", 9_900],
  ["1h30m5s", 5_405],
  ["5s1h", 3_605],
  [".5m", 30],
  ["1.m", 60],
  ["0.1s0.2s0.7s", 1],
  ["1500000us", 1],
  ["1500000\u00b5s", 1],
  ["1500000\u03bcs", 1],
  ["1.999999999s", 1],
  ["2147483s", 2_147_483],
];

test.each(good)("readSeconds() reads %s as %i", (text, seconds) => {
  expect(readSeconds(text)).toBe(seconds);
});

const bad = [
  "",
  "+",
  "-",
  "1",
  "30",
  "s",
  ".s",
  "1h 5m",
  " 1s",
  "1S",
  "1d",
  "1h5",
  "1..5s",
  "1e3s",
  "0x1s",
  "--1s",
  "-1s",
  "-1ns",
  "2147484s",
  "3000000h",
  "soon",
  "\u0663s",
  "1s\n",
  `${"0".repeat(64)}1s`,
];

test.each(bad)("readSeconds() does not read %j", (text) => {
  expect(readSeconds(text)).toBe(undefined);
});
