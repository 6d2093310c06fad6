// SIGKILL at any moment of ADD leaves the old rules or the new ones (the long run: npm run faults).
import { expect, test } from "vitest";
import { requireRoot } from "./node.ts";
import { killAdds } from "./run/kills.ts";
import { lineByLine } from "./run/line-by-line.ts";

const kills = 200;

test(`ADD leaves the old ruleset or the new one in each family when it is killed, ${kills} times`, {
  timeout: 240_000,
}, async ({ skip }) => {
  requireRoot(skip);

  const { held, late, ...found } = await killAdds({ kills, atOnce: 4 });

  expect(found).toStrictEqual({ kills, faults: [] });
  // Kills that hit nothing would prove nothing.
  expect(held.old).toBeGreaterThan(10);
  expect(held.new).toBeGreaterThan(10);
  expect(late).toBeLessThan(kills / 2);
});

// Else the test above would prove nothing.
test("half states are found when restore takes one line at a time", {
  timeout: 120_000,
}, async ({ skip }) => {
  requireRoot(skip);

  const { faults } = await killAdds({ kills: 20, atOnce: 4, restore: lineByLine });

  expect(faults.filter((fault) => fault.includes("is neither old nor new"))).not.toStrictEqual([]);
});
