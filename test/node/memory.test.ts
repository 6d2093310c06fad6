// What is known of the node as a file, in a directory of the test's own.
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Knowledge, noKnowledge } from "../../src/node/knowledge.ts";
import { forgiving, openMemory } from "../../src/node/memory.ts";
import { thrownBy } from "../fake/thrown.ts";

let stateDir = "";
const known: Knowledge = { proven: [{ backend: "nft", family: "ipv4" }] };

beforeEach(() => {
  stateDir = join(mkdtempSync(join(tmpdir(), "sluice-")), "state");
});
afterEach(() => rmSync(dirname(stateDir), { recursive: true }));

test("openMemory() knows nothing where nothing is kept, and makes nothing", () => {
  expect(openMemory(stateDir).read()).toEqual(noKnowledge);
  expect(readdirSync(dirname(stateDir))).toEqual([]);
});

test("openMemory() keeps one file for this boot", () => {
  openMemory(stateDir).keep(known);
  openMemory(stateDir).keep(known);
  expect(openMemory(stateDir).read()).toEqual(known);
  expect(readdirSync(stateDir)).toEqual(["backend.json"]);
});

test("openMemory() takes nothing from a directory that others can write to", () => {
  openMemory(stateDir).keep(known);
  chmodSync(stateDir, 0o777);
  const message = `${stateDir} is not taken for ours: others than its owner may write (mode 777)`;
  for (const verb of [() => openMemory(stateDir).read(), () => openMemory(stateDir).keep(known)]) {
    expect(thrownBy(verb)).toMatchObject({ code: 5, message });
  }
});

test("forgiving() fails no command, and tells", () => {
  mkdirSync(join(stateDir, "backend.json", "full"), { recursive: true, mode: 0o700 });
  const told: unknown[] = [];
  const memory = forgiving(openMemory(stateDir), (error) => told.push(String(error)));
  expect(memory.read()).toEqual(noKnowledge);
  memory.keep(known);
  expect(told).toEqual([
    `Fault: ${stateDir}/backend.json is not taken for ours: it is no regular file`,
    `Fault: ${stateDir}/backend.json cannot be written`,
  ]);
  expect(readdirSync(stateDir)).toEqual(["backend.json"]);
});
