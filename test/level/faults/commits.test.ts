// A death between two commits of one load (the same run as in npm run faults).
import { expect, test } from "vitest";
import { requireRoot } from "./node.ts";
import { dieBetweenCommits } from "./run/commits.ts";

test("a death between the commits of two tables lets nothing pass by, and is found and mended", {
  timeout: 240_000,
}, async ({ skip }) => {
  requireRoot(skip);

  const { deaths, faults } = await dieBetweenCommits();

  expect(faults).toEqual([]);
  expect(deaths).toBe(200);
});
