// What an ADD that fails leaves, over the fakes: all as it was before, or a record by which DEL finds what is there.
import { expect, test } from "vitest";
import type { AttachmentRecord } from "../../src/attachment/record.ts";
import { cni, failed, loadState, own, succeeded, withLinkerd } from "../fake/call.ts";
import { intentIn } from "../fake/record.ts";
import { makeMemoryStore } from "../fake/store.ts";
import { makeWorld, type World } from "../fake/world.ts";
import { complete } from "../lab/states.ts";

const families = ["ipv4", "ipv6"] as const;
const ours = (world: World, backend: "nft" | "legacy" = "nft") =>
  families.map((family) => own(world, backend, family));
const [all, none] = [
  [complete, complete],
  [[], []],
];
const eth0 = "net,c0ffee,eth0.json";
const setting = "/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close_wait";
const full = Object.assign(new Error("ENOSPC: no space left on device, write"), {
  syscall: "write",
});
const noSpace = failed(5, "write failed for pod emoji/web", full.message);
const otherPorts = withLinkerd({ "inbound-ports-to-ignore": [25] });

const annotated = {
  conf: {
    kubernetes: {},
    runtimeConfig: {
      "io.kubernetes.cri.pod-annotations": {
        "linkerd.io/proxy-version": "1",
        "config.linkerd.io/close-wait-timeout": "90s",
      },
    },
  },
};

/** A world whose disk is full for what `isRefused` says. */
function fullFor(isRefused: (record: AttachmentRecord) => boolean): World {
  const store = makeMemoryStore();
  const write: typeof store.write = (record) => {
    if (isRefused(record)) throw full;
    store.write(record);
  };
  const world = makeWorld({ openStore: () => ({ ...store, write }) });
  world.sysctls.set(setting, "60");
  return { ...world, store };
}

test("ADD writes no rule when the record of what is intended cannot be written", async () => {
  const world = fullFor(() => true);
  expect(await cni(world, "ADD")).toEqual(noSpace);
  expect([world.asked, world.store.records.size]).toEqual([[], 0]);
});

test("ADD takes rules and setting back when the record cannot be made good", async () => {
  const world = fullFor(({ state }) => state === "applied");
  expect(await cni(world, "ADD", annotated)).toEqual(noSpace);
  expect([ours(world), world.store.records.size]).toEqual([none, 0]);
  expect(world.sysctls.get(setting)).toBe("60");
  expect(world.open).toEqual(new Set());
});

test("ADD takes its rules back when the setting cannot be set", async () => {
  const world = fullFor(() => false);
  const said = "sh: 1: cannot create /proc/sys/x: Read-only file system";
  world.execFaults.push({}, {}, { exitCode: 2, outputs: ["", said] });
  const { stdout } = await cni(world, "ADD", annotated);
  expect(JSON.parse(stdout)).toMatchObject({
    code: 102,
    msg: expect.stringContaining("pod emoji/web wants a close-wait-timeout"),
    details: expect.stringContaining(setting),
  });
  expect([ours(world), world.store.records.size]).toEqual([none, 0]);
});

test("ADD gives the setting back when the tool that sets it gives no answer", async () => {
  const world = fullFor(() => false);
  world.execFaults.push({}, {}, (did) => ({ ...did, exitCode: undefined, timedOut: true }));
  const { stdout } = await cni(world, "ADD", annotated);
  expect(JSON.parse(stdout)).toMatchObject({ code: 11 });
  expect([ours(world), world.sysctls.get(setting), world.store.records.size]).toEqual([
    none,
    "60",
    0,
  ]);
});

test("an ADD that fails brings back rules and record of the ADD before it", async () => {
  const world = fullFor((record) => {
    return record.state === "applied" && intentIn(record).excludeInbound[0]?.from === 25;
  });
  await cni(world, "ADD");
  const before = world.store.records.get(eth0);
  expect(await cni(world, "ADD", otherPorts)).toEqual(noSpace);
  expect([ours(world), world.store.records.get(eth0)]).toEqual([all, before]);
});

test("an ADD that fails leaves the rules to the pod's other attachment", async () => {
  const world = fullFor(({ state, ifName }) => state === "applied" && ifName === "net1");
  await cni(world, "ADD");
  const net1 = { ...otherPorts, env: { CNI_IFNAME: "net1" } };
  expect(await cni(world, "ADD", net1)).toEqual(noSpace);
  expect([ours(world), [...world.store.records.keys()]]).toEqual([all, [eth0]]);
  expect(await cni(world, "CHECK")).toEqual(succeeded(""));
});

test("the record stays, and DEL goes by it, when rules cannot be taken back", async () => {
  const world = fullFor(({ state }) => state === "applied");
  const stuck = { program: "iptables-nft-restore", fails: { status: 1, stderr: "oh no" } } as const;
  const meanwhile = () =>
    void world.iptables.events.push(...Array.from({ length: 4 }, () => stuck));
  world.iptables.events.push({ program: "ip6tables-nft-save", meanwhile });
  expect(await cni(world, "ADD")).toEqual(noSpace);
  expect(ours(world)[0]).toEqual(complete);
  expect(world.store.records.get(eth0)).toMatchObject({ state: "intended" });
  expect(world.lines).toMatchObject([{ level: "warn" }, { level: "error" }]);
  expect(await cni(world, "DEL")).toEqual(succeeded(""));
  expect([ours(world), world.store.records.size]).toEqual([none, 0]);
});

test("the record stays, and DEL goes by it, when the other backend's rules cannot be taken out", async () => {
  const world = makeWorld();
  loadState(world, "legacy", "all in order");
  const stuck = {
    program: "iptables-legacy-restore",
    fails: { status: 1, stderr: "oh no" },
  } as const;
  world.iptables.events.push(...Array.from({ length: 4 }, () => stuck));
  expect((await cni(world, "ADD")).exitCode).toBe(1);
  expect([ours(world), ours(world, "legacy")[0]]).toEqual([all, complete]);
  expect(world.store.records.get(eth0)).toMatchObject({ state: "intended" });
  expect(await cni(world, "DEL")).toEqual(succeeded(""));
  expect([ours(world), ours(world, "legacy"), world.store.records.size]).toEqual([none, none, 0]);
});

test("GC leaves the rules of a record that goes to the attachment that stays", async () => {
  const world = makeWorld();
  await cni(world, "ADD");
  await cni(world, "ADD", { ...otherPorts, env: { CNI_IFNAME: "net1" } });
  world.store.writtenMs = -3_600_000;
  const valid = [{ containerID: "c0ffee", ifname: "eth0" }];
  await cni(world, "GC", { conf: { "cni.dev/valid-attachments": valid } });
  expect([...world.store.records.keys()]).toEqual([eth0]);
  expect(await cni(world, "CHECK")).toEqual(succeeded(""));
});
