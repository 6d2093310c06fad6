// What holds for the intents of any mesh.
import { expect, test } from "vitest";
import { familiesOf, type Intent, narrowed } from "../../src/mesh/profile.ts";
import { families } from "../../src/netfilter/table.ts";

const traffic = { protocols: ["tcp"], loopback: false } as const;
const intent: Intent = {
  words: { port: 1 },
  rulesets: families.map((family) => ({ family, tables: [], traffic })),
  settings: [{ name: "net.a", value: "1" }],
};

test("narrowed() leaves rulesets out, and nothing else", () => {
  const [ipv4, ipv6] = intent.rulesets;
  expect(narrowed(intent, (family) => family === "ipv6")).toEqual({ ...intent, rulesets: [ipv6] });
  expect(narrowed(intent, (family) => family === "ipv4")).toEqual({ ...intent, rulesets: [ipv4] });
  expect(narrowed(intent, () => true)).toEqual(intent);
});

test("familiesOf() tells the families that have a ruleset", () => {
  expect([familiesOf(intent), familiesOf(narrowed(intent, () => false))]).toEqual([
    ["ipv4", "ipv6"],
    [],
  ]);
});
