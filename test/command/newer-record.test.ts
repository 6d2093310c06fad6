// A record that a later release wrote, for the attachment itself or for another one of its container: every command says so,
// and leaves the record and its rules alone.
import { expect, test } from "vitest";
import { NewerRecordError } from "../../src/attachment/newer.ts";
import type { Store } from "../../src/attachment/store.ts";
import { version } from "../../src/version.ts";
import { cni, failed, own, succeeded } from "../fake/call.ts";
import { makeMemoryStore } from "../fake/store.ts";
import { makeWorld, type World } from "../fake/world.ts";
import { complete } from "../lab/states.ts";

const families = ["ipv4", "ipv6"] as const;
const name = "net,c0ffee,eth0.json";
const said = `the record ${name} has format 3, of sluice 0.9.0; sluice ${version} reads formats up to 2`;
const advice = "upgrade sluice on this node; the record and its rules are left as they are";

/** A world with the pod redirected, whose record then is one of a later release, for these readers. */
async function upgraded(...readers: ("read" | "ofContainer" | "ofInode")[]): Promise<World> {
  const store = makeMemoryStore();
  const refuse = () => {
    if (isLater) throw new NewerRecordError(name, { format: 3, version: "0.9.0" });
  };
  let isLater = false;
  const guarded: Store = {
    ...store,
    read: (key) => {
      if (readers.includes("read")) refuse();
      return store.read(key);
    },
    ofContainer: (containerId) => {
      if (readers.includes("ofContainer")) refuse();
      return store.ofContainer(containerId);
    },
    ofInode: (inode) => {
      if (readers.includes("ofInode")) refuse();
      return store.ofInode(inode);
    },
  };
  const world = { ...makeWorld({ openStore: () => guarded }), store };
  await cni(world, "ADD");
  isLater = true;
  world.asked.length = 0;
  world.lines.length = 0;
  return world;
}

function untouched(world: World): void {
  expect(families.map((family) => own(world, "nft", family))).toEqual([complete, complete]);
  expect([...world.store.records.keys()]).toEqual([name]);
  expect([world.iptables.written.length, world.open, world.store.locked]).toEqual([
    2,
    new Set(),
    new Set(),
  ]);
}

test.each(["read", "ofContainer"] as const)("CHECK and ADD fail: %s", async (reader) => {
  const world = await upgraded(reader);
  expect(await cni(world, "CHECK")).toEqual(failed(11, said, advice));
  const message = `pod emoji/web cannot be recorded: ${said}`;
  expect(await cni(world, "ADD")).toEqual(failed(11, message, advice));
  expect(world.asked).toEqual([]);
  untouched(world);
});

test.each([
  ["read", "the record cannot be used, so no rule is touched"],
  ["ofContainer", "rules were not taken out; the record is kept"],
  ["ofInode", "rules were not taken out; the record is kept"],
] as const)("DEL succeeds with a warning, and keeps all: %s", async (reader, message) => {
  const world = await upgraded(reader);
  expect(await cni(world, "DEL")).toEqual(succeeded(""));
  expect(world.lines).toMatchObject([
    { level: "warn", message, err: `NewerRecordError: ${said}` },
    { level: "info", message: "done" },
  ]);
  untouched(world);
});

test("GC keeps it, and all of its container", async () => {
  const world = await upgraded("read", "ofContainer");
  world.store.writtenMs = -3_600_000;
  expect(await cni(world, "GC", { conf: { "cni.dev/valid-attachments": [] } })).toEqual(
    succeeded(""),
  );
  expect(world.lines).toMatchObject([
    { level: "warn", message: "the record is kept", err: `NewerRecordError: ${said}` },
    { level: "info", message: "done", removed: 0 },
  ]);
  untouched(world);
});
