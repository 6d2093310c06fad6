// SIGKILL at any moment of DEL: what is left then is known, whole, and gone with the next DEL (the long run: npm run faults).
import { expect, test } from "vitest";
import { requireRoot } from "./node.ts";
import { killDels } from "./run/deaths.ts";
import { lineByLine } from "./run/line-by-line.ts";

const kills = 100;

test(`DEL leaves all rules or none in each family when it is killed, ${kills} times`, {
  timeout: 240_000,
}, async ({ skip }) => {
  requireRoot(skip);

  const { held, late, ...found } = await killDels({ kills, atOnce: 4 });

  expect(found).toStrictEqual({ kills, faults: [] });
  // Kills that hit nothing would prove nothing.
  expect(held.all).toBeGreaterThan(5);
  expect(held.none).toBeGreaterThan(5);
  expect(late).toBeLessThan(kills / 2);
});

// Else the test above would prove nothing.
test("half states are found when restore takes one line at a time", {
  timeout: 120_000,
}, async ({ skip }) => {
  requireRoot(skip);

  const { faults } = await killDels({ kills: 24, atOnce: 4, restore: lineByLine });

  expect(faults.filter((fault) => fault.includes("neither all of our rules"))).not.toStrictEqual(
    [],
  );
});
