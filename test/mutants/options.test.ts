import { expect, test } from "vitest";
import { parseOptions } from "./options.ts";

test.for<[args: string[], expected: object]>([
  [[], { seed: 5, lines: 300, paths: [] }],
  [["--all"], { seed: 5, lines: Infinity, paths: [] }],
  [["--seed", "7", "--lines", "40"], { seed: 7, lines: 40, paths: [] }],
  [["src/cni", "src/log.ts"], { seed: 5, lines: Infinity, paths: ["src/cni", "src/log.ts"] }],
  [["src/cni", "--lines", "9"], { seed: 5, lines: 9, paths: ["src/cni"] }],
])("parseOptions() takes %j", ([args, expected]) => {
  expect(parseOptions(args, 5)).toEqual(expected);
});

test.for([
  ["--seed", "x"],
  ["--seed", "0"],
  ["--lines", "-1"],
  ["--lines", "1.5"],
  ["--all", "--lines", "9"],
  ["--fast"],
])("parseOptions() refuses %j", (args) => {
  expect(() => parseOptions(args, 5)).toThrow();
});
