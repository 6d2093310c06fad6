// A full disk, no more processes, too little memory, a clock that was set, and the like: no half state, and nothing that a
// DEL does not find once the node has again what it lacked (the long run: npm run faults).
import { expect, test } from "vitest";
import { requireRoot } from "./node.ts";
import { sufferAll } from "./run/hardships.ts";

test("ADD, CHECK and DEL on a node that lacks something leave nothing half-way, and a DEL nothing at all", {
  timeout: 600_000,
}, async ({ skip }) => {
  requireRoot(skip);

  const { added, faults } = await sufferAll({ rounds: 1, atOnce: 4, oneOf: 5 });

  expect(faults).toStrictEqual([]);
  // Hardships that never hurt would prove nothing, and so would those that let no ADD through.
  expect(added.no).toBeGreaterThan(5);
  expect(added.yes).toBeGreaterThan(10);
});
