import { expect, test } from "vitest";
import { ratio, spread, summarize } from "./stats.ts";

test.for([
  { values: [3], min: 3, median: 3, p95: 3 },
  { values: [2, 1], min: 1, median: 1.5, p95: 2 },
  { values: [5, 1, 3], min: 1, median: 3, p95: 4.8 },
  { values: [10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0], min: 0, median: 5, p95: 9.5 },
])("spread() of $values", ({ values, ...expected }) => {
  expect(spread(values)).toEqual(expected);
});

test("spread() leaves the values in their order", () => {
  const values = [2, 1];
  spread(values);
  expect(values).toEqual([2, 1]);
});

test("summarize() keeps the largest memory and both times", () => {
  const samples = [
    { wallMs: 30, cpuMs: 10, rssMb: 50 },
    { wallMs: 10, cpuMs: 20, rssMb: 60.04 },
  ];
  expect(summarize(samples)).toEqual({
    runs: 2,
    wallMs: { min: 10, median: 20, p95: 29 },
    cpuMs: { min: 10, median: 15, p95: 19.5 },
    rssMb: 60,
  });
});

test("summarize() of nothing is nothing", () => {
  expect(summarize([])).toBeUndefined();
});

test("ratio() has two digits", () => {
  expect(ratio(10, 3)).toBe(3.33);
});
