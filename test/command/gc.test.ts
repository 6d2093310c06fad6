// GC over the fakes: forgets what the runtime no longer knows, and touches no rule.
import { expect, test } from "vitest";
import type { Output } from "../../src/command/run.ts";
import { cni, failed, own, succeeded } from "../fake/call.ts";
import { makeMemoryStore } from "../fake/store.ts";
import { epochMs, makeNetns, makeWorld, netnsPath, type World } from "../fake/world.ts";
import { complete } from "../lab/states.ts";

/** Three attachments, one of them of another network, all written an hour ago. */
async function used(world = makeWorld()): Promise<World> {
  await cni(world, "ADD");
  await cni(world, "ADD", { env: { CNI_IFNAME: "net1" } });
  await cni(world, "ADD", { conf: { name: "other" } });
  world.lines.length = 0;
  world.iptables.written.length = 0;
  world.store.writtenMs = epochMs - 3_600_000;
  return world;
}

const eth0 = { containerID: "c0ffee", ifname: "eth0" };
const net1 = { containerID: "c0ffee", ifname: "net1" };
const lists: [when: string, conf: Record<string, unknown>, left: string[]][] = [
  ["both are valid", { "cni.dev/valid-attachments": [eth0, net1] }, ["eth0", "net1"]],
  ["one is valid", { "cni.dev/valid-attachments": [net1] }, ["net1"]],
  ["the other key is sent", { "cni.dev/attachments": [net1] }, ["net1"]],
  ["none is valid", { "cni.dev/valid-attachments": [] }, []],
  ["the list is null", { "cni.dev/valid-attachments": null }, []],
  ["there is no list", {}, []],
  [
    "the container is another",
    { "cni.dev/valid-attachments": [{ ...eth0, containerID: "x" }] },
    [],
  ],
];

test.each(lists)("GC keeps what is valid, and other networks, when %s", async (_, conf, left) => {
  const world = await used();
  expect(await cni(world, "GC", { conf })).toEqual(succeeded(""));
  const names = left.map((ifName) => `net,c0ffee,${ifName}.json`);
  expect([...world.store.records.keys()]).toEqual([...names, "other,c0ffee,eth0.json"]);
  expect(world.lines).toMatchObject([{ message: "done", command: "GC", removed: 2 - left.length }]);
  expect(world.iptables.written).toEqual([]);
  expect(own(world, "nft", "ipv4")).toEqual(complete);
});

test("GC keeps what was written since it began, while its netns is there", async () => {
  const world = await used();
  world.store.writtenMs = epochMs;
  expect(await cni(world, "GC")).toEqual(succeeded(""));
  expect(world.store.records.size).toBe(3);
  world.netns.set(netnsPath, makeNetns(netnsPath, 2));
  expect(await cni(world, "GC")).toEqual(succeeded(""));
  expect([...world.store.records.keys()]).toEqual(["other,c0ffee,eth0.json"]);
  expect(world.open).toEqual(new Set());
});

const wrong: [when: string, list: unknown, error: Output][] = [
  ["it is no list", {}, failed(7, "invalid conf: cni.dev/valid-attachments: it is not a list")],
  [
    "an entry is null",
    [eth0, null],
    failed(7, "invalid conf: cni.dev/valid-attachments: null is not {containerID, ifname}"),
  ],
  [
    "an entry has no ifname",
    [{ containerID: "a" }],
    failed(
      7,
      'invalid conf: cni.dev/valid-attachments: {"containerID":"a"} is not {containerID, ifname}',
    ),
  ],
];

test.each(wrong)(
  "GC removes nothing when of the list of valid attachments %s",
  async (_, list, error) => {
    const world = await used();
    expect(await cni(world, "GC", { conf: { "cni.dev/valid-attachments": list } })).toEqual(error);
    expect(world.store.records.size).toBe(3);
  },
);

test("GC goes on after an error, and tells it at the end", async () => {
  const store = makeMemoryStore();
  const remove: typeof store.remove = (key) => {
    if (key.ifName === "eth0") throw new Error("EACCES: permission denied");
    store.remove(key);
  };
  const world = makeWorld({ openStore: () => ({ ...store, remove }) });
  await cni(world, "ADD");
  await cni(world, "ADD", { env: { CNI_IFNAME: "net1" } });
  const message = "1 of 2 stale records of network net could not be removed";
  expect(await cni(world, "GC")).toEqual(failed(5, message, "EACCES: permission denied"));
  expect([...store.records.keys()]).toEqual(["net,c0ffee,eth0.json"]);
});
