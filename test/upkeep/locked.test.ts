// The lock of a netns, as the commands take it and live with it: who changes rules holds it, who looks waits where it must.
import { expect, test } from "vitest";
import type { Store } from "../../src/attachment/store.ts";
import { Fault } from "../../src/fault.ts";
import { cni, failed, loadState, own, prevResult, succeeded, withLinkerd } from "../fake/call.ts";
import { makeMemoryStore } from "../fake/store.ts";
import { makeWorld, netnsPath, type World } from "../fake/world.ts";
import { complete } from "../lab/states.ts";

const families = ["ipv4", "ipv6"] as const;
const ours = (world: World) => families.map((family) => own(world, "nft", family));
const all = [complete, complete];
const result = succeeded(JSON.stringify(prevResult));
const inode = 1;
const others = `netns ${netnsPath} is being worked on by another process`;
const busy = failed(11, `pod emoji/web cannot be worked on: ${others}`);
const untakeable = new Fault("io", "the netns cannot be locked");

/** A world whose locks are had so; each time, in turn. */
function lockedBy(...turns: (() => void)[]): World {
  const store = makeMemoryStore();
  const lock: Store["lock"] = async (netns, remainingMs) => {
    turns.shift()?.();
    return await store.lock(netns, remainingMs);
  };
  return { ...makeWorld({ openStore: () => ({ ...store, lock }) }), store };
}

const refuse = () => {
  throw new Fault("try-again", others);
};

test("ADD and DEL hold the lock while they work, and let go of it whatever comes", async () => {
  const held: number[] = [];
  const world = makeWorld();
  const look = () => void held.push(...world.store.locked);
  world.iptables.events.push({ program: "iptables-nft-restore", meanwhile: look });
  expect(await cni(world, "ADD")).toEqual(result);
  world.iptables.events.push({ program: "iptables-nft-restore", meanwhile: look });
  expect(await cni(world, "DEL")).toEqual(succeeded(""));
  world.execFaults.push({ timedOut: true });
  expect((await cni(world, "ADD")).exitCode).toBe(1);
  expect([held, world.store.locked]).toEqual([[inode, inode], new Set()]);
});

test("ADD fails, with nothing done, while another process works in the netns", async () => {
  const world = makeWorld();
  world.store.locked.add(inode);
  expect(await cni(world, "ADD")).toEqual(busy);
  expect([world.asked, world.store.records.size]).toEqual([[], 0]);
  expect(world.store.locked).toEqual(new Set([inode]));
});

test("DEL keeps the record while another process works in the netns", async () => {
  const world = makeWorld();
  await cni(world, "ADD");
  world.store.locked.add(inode);
  expect(await cni(world, "DEL")).toEqual(succeeded(""));
  expect([ours(world), world.store.records.size]).toEqual([all, 1]);
  expect(world.lines[1]).toMatchObject({
    level: "warn",
    message: "rules were not taken out; the record is kept",
  });
});

test("DEL goes by the record that there is once it has the lock", async () => {
  const world = lockedBy(
    () => undefined,
    () => world.store.records.clear(),
  );
  await cni(world, "ADD");
  expect(await cni(world, "DEL")).toEqual(succeeded(""));
  expect(ours(world)).toEqual(all);
});

test("DEL takes the rules out also where no lock can be had, and ADD then fails", async () => {
  const fail = () => {
    throw untakeable;
  };
  const world = lockedBy(() => undefined, fail, fail);
  await cni(world, "ADD");
  expect(await cni(world, "DEL")).toEqual(succeeded(""));
  expect([ours(world), world.store.records.size]).toEqual([[[], []], 0]);
  expect(world.lines[1]).toMatchObject({
    level: "warn",
    message: "the netns is worked in without its lock",
  });
  const message = "pod emoji/web cannot be worked on: the netns cannot be locked";
  expect(await cni(world, "ADD")).toEqual(failed(5, message));
});

test("CHECK tells the drift where no lock can be had", async () => {
  const fail = () => {
    throw untakeable;
  };
  const world = lockedBy(() => undefined, fail, fail);
  await cni(world, "ADD");
  loadState(world, "nft", "its rules flushed");
  expect(JSON.parse((await cni(world, "CHECK")).stdout)).toMatchObject({ code: 100 });
});

test("CHECK takes no lock where all is right", async () => {
  const world = makeWorld();
  await cni(world, "ADD");
  world.store.locked.add(inode);
  expect(await cni(world, "CHECK")).toEqual(succeeded(""));
});

test("CHECK takes what is half done for no drift, and looks again after it", async () => {
  const world = lockedBy(
    () => undefined,
    refuse,
    () => loadState(world, "nft", "all in order"),
  );
  await cni(world, "ADD");
  loadState(world, "nft", "its rules flushed");
  expect(await cni(world, "CHECK")).toEqual(succeeded(""));
  expect(world.store.locked).toEqual(new Set());
});

test("CHECK looks again where the record is a new one by then", async () => {
  const world = lockedBy(
    () => undefined,
    () => undefined,
    () => {
      const record = world.store.records.get("net,c0ffee,eth0.json");
      if (record !== undefined) world.store.write({ ...record, sinceBootMs: 99 });
      loadState(world, "nft", "all in order");
    },
  );
  await cni(world, "ADD", withLinkerd({ "inbound-ports-to-ignore": [25] }));
  await cni(world, "ADD");
  loadState(world, "nft", "its rules flushed");
  expect(await cni(world, "CHECK")).toEqual(succeeded(""));
});

test("CHECK tells the drift that is there after the work of others, or that they do not end", async () => {
  const drifted = lockedBy(() => undefined, refuse);
  await cni(drifted, "ADD");
  loadState(drifted, "nft", "its rules flushed");
  expect(JSON.parse((await cni(drifted, "CHECK")).stdout)).toMatchObject({ code: 100 });
  const endless = makeWorld();
  await cni(endless, "ADD");
  loadState(endless, "nft", "its rules flushed");
  endless.store.locked.add(inode);
  expect(await cni(endless, "CHECK")).toEqual(busy);
});
