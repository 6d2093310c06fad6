// Two calls on one attachment at once end all or nothing, and known (the long run: npm run faults).
import { expect, test } from "vitest";
import { requireRoot } from "./node.ts";
import { callPairs } from "./run/pairs.ts";

const pairs = 48;

test(`two calls at once leave all rules or none, and a DEL after them nothing, ${pairs} times`, {
  timeout: 240_000,
}, async ({ skip }) => {
  requireRoot(skip);

  const { held, ...found } = await callPairs({ pairs, atOnce: 4 });

  expect(found).toStrictEqual({ pairs, faults: [] });
  // Pairs of which always the same wins would prove little.
  expect(held.all).toBeGreaterThan(5);
  expect(held.none).toBeGreaterThan(5);
});
