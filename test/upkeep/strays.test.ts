// What else was seen while rules were put in place: what is ours, and what is only told.
import { expect, test } from "vitest";
import type { Outcome } from "../../src/netfilter/iptables/job.ts";
import { holdsOwn } from "../../src/upkeep/strays.ts";
import { settingsWith, taskIn } from "../fake/task.ts";
import { makeWorld } from "../fake/world.ts";

const { settings, plan } = settingsWith();
const { rulesets } = plan.intent;
const tools = { restore: "/r", save: "/s", waits: true };
const outcome = (change: Partial<Outcome>): Outcome => ({
  job: { family: "ipv4", backend: "legacy", tools, restore: "" },
  ...{ restoreStatus: 0, saveStatus: 0, saved: "", stderr: "" },
  ...change,
});
const nat = (...lines: readonly string[]) =>
  ["*nat", ":OUTPUT ACCEPT [0:0]", ...lines, "COMMIT", ""].join("\n");

const where = { level: "warn", backend: "legacy", family: "ipv4" };
const hidden =
  "the other backend's nat table cannot be shown; whether it redirects as well is not known";
const strangers =
  "rules of someone else's redirect traffic in the other backend; which of the two wins is not ours to decide";

const redirect = "-A OUTPUT -p tcp -j REDIRECT --to-ports 1";
const rows: [when: string, seen: Partial<Outcome>, holds: boolean, told: object[]][] = [
  ["nothing is there", {}, false, []],
  ["a chain of ours is there", { saved: nat(":PROXY_INIT_OUTPUT - [0:0]") }, true, []],
  [
    "the kernel has no such table",
    { saveStatus: 1, stderr: "Table does not exist (do you need to insmod?)" },
    false,
    [],
  ],
  [
    "the tool failed, nobody knows why",
    { saveStatus: 1, stderr: "oh no" },
    false,
    [{ ...where, said: "oh no", message: hidden }],
  ],
  [
    "the table is not shown",
    { saved: "# Table `nat' is incompatible, use 'nft' tool.\n" },
    false,
    [{ ...where, said: "Table `nat' is incompatible, use 'nft' tool.", message: hidden }],
  ],
  [
    "somebody else redirects",
    { saved: nat(redirect) },
    false,
    [{ ...where, rules: [redirect], message: strangers }],
  ],
  ["somebody else redirects UDP", { saved: nat(redirect.replace("tcp", "udp")) }, false, []],
];

test.each(rows)("holdsOwn() when %s", (...[, seen, holds, told]) => {
  const world = makeWorld();
  expect(holdsOwn(taskIn(world, settings), outcome(seen), rulesets)).toBe(holds);
  expect(world.lines).toEqual(told);
});

test("holdsOwn() knows nothing as its own where there are no rulesets", () => {
  const world = makeWorld();
  const seen = outcome({ saved: nat(":PROXY_INIT_OUTPUT - [0:0]", redirect) });
  expect(holdsOwn(taskIn(world, settings), seen, [])).toBe(false);
  expect(world.lines).toEqual([]);
});
