// An attachment redirected, observed, repaired and cleaned over the fakes, by nobody's CNI call.
import { expect, test } from "vitest";
import { attachedTo } from "../../src/upkeep/attached.ts";
import { clean } from "../../src/upkeep/clean.ts";
import { enter } from "../../src/upkeep/netns.ts";
import { type Observed, observe } from "../../src/upkeep/observe.ts";
import { expectedBy, recordFor, repair } from "../../src/upkeep/recorded.ts";
import { redirect } from "../../src/upkeep/redirect.ts";
import type { Entered, Task } from "../../src/upkeep/task.ts";
import { loadState, own } from "../fake/call.ts";
import { settingsWith, subject, taskIn } from "../fake/task.ts";
import { makeWorld, netnsPath, type World } from "../fake/world.ts";
import { complete, outboundJump } from "../lab/states.ts";

const families = ["ipv4", "ipv6"] as const;
const setting = "net.netfilter.nf_conntrack_tcp_timeout_close_wait";
const settingPath = `/proc/sys/${setting.replaceAll(".", "/")}`;
const ours = (world: World) => families.map((family) => own(world, "nft", family));
const [all, none] = [
  [complete, complete],
  [[], []],
];

type Made = { readonly world: World; readonly task: Task };

/** A world with the attachment redirected. */
async function redirected(change: Readonly<Record<string, unknown>> = {}): Promise<Made> {
  const world = makeWorld();
  world.sysctls.set(settingPath, "60");
  const { settings, plan } = settingsWith(change);
  const task = taskIn(world, settings);
  await enter(task, subject, (here) => redirect(task, here, { ...plan, warned: ["it was odd"] }));
  return { world, task };
}

/** What its record lets expect, and what is seen of it. */
function look(task: Task): Promise<Observed> {
  return enter(task, subject, async (here) => {
    return await observe(task, here.netns, await expectedBy(task, recordOf(task, here)));
  });
}

function recordOf(task: Task, here: Entered) {
  const record = recordFor(task, here);
  if (record === undefined) throw new Error("no record of the attachment");
  return record;
}

test("redirect() puts rules, settings and record in place, and tells what it did", async () => {
  const world = makeWorld();
  world.sysctls.set(settingPath, "60");
  const { settings, plan } = settingsWith({ "close-wait-timeout": "90s" });
  const task = taskIn(world, settings);
  const done = await enter(task, subject, (here) => redirect(task, here, plan));
  expect(done).toEqual({ families, backend: "nft", changed: families });
  expect([ours(world), world.sysctls.get(settingPath)]).toEqual([all, "90"]);
  expect(world.store.read(subject.key)).toMatchObject({ state: "applied", pod: subject.pod });
  expect([world.open, world.lines]).toEqual([new Set(), []]);
  expect(await look(task)).toEqual({ kind: "as-intended" });
});

test("observe() names rules, settings and families that differ", async () => {
  const { world, task } = await redirected({ "close-wait-timeout": "90s" });
  loadState(world, "nft", "the outbound jump missing");
  world.sysctls.set(settingPath, "61");
  const missing = { kind: "missing-jump", chain: "OUTPUT", expected: outboundJump, found: "" };
  expect(await look(task)).toEqual({
    kind: "drift",
    backend: "nft",
    drifts: [
      ...families.map((family) => ({ ...missing, family })),
      { kind: "changed-sysctl", setting, expected: "90", found: "61" },
    ],
  });
});

test("observe() tells of a family that was left open and is spoken by now", async () => {
  const world = makeWorld();
  const { settings, plan } = settingsWith();
  const task = taskIn(world, settings);
  await enter(task, subject, (here) => redirect(task, here, { ...plan, required: ["ipv4"] }));
  expect(world.store.read(subject.key)).toMatchObject({ open: ["ipv6"] });
  expect(await look(task)).toEqual({ kind: "as-intended" });
  world.addresses.push("fd00::2");
  const expected = "no address and no route, since it is not redirected";
  expect(await look(task)).toEqual({
    kind: "drift",
    backend: "nft",
    drifts: [
      { kind: "open-family", family: "ipv6", expected, found: expect.stringContaining("fd00") },
    ],
  });
  await enter(task, subject, (here) => repair(task, here, recordOf(task, here)));
  expect([ours(world), await look(task)]).toEqual([all, { kind: "as-intended" }]);
});

test("observe() says that it cannot tell where a table is not shown", async () => {
  const { world, task } = await redirected();
  const stdout = "# Table `nat' is incompatible, use 'nft' tool.\n";
  world.iptables.events.push({ program: "iptables-nft-save", fails: { stdout } });
  expect(await look(task)).toMatchObject({
    kind: "cannot-tell",
    drifts: [{ kind: "unverifiable", family: "ipv4" }],
  });
});

test("observe() says that a tool failed where none answers, or one refuses", async () => {
  const { world, task } = await redirected();
  world.execFaults.push({ timedOut: true });
  expect(await look(task)).toMatchObject({ kind: "failed", error: { name: "BatchError" } });
  const event = { program: "iptables-nft-save", fails: { status: 1, stderr: "oh no" } } as const;
  world.iptables.events.push(event);
  expect(await look(task)).toMatchObject({
    kind: "failed",
    error: { kind: "try-again", message: expect.stringMatching(/could not show the nat table/) },
  });
});

test("repair() brings rules and settings back to what the record says, and keeps its reasons", async () => {
  const { world, task } = await redirected({ "close-wait-timeout": "90s" });
  const before = world.store.read(subject.key);
  loadState(world, "nft", "its rules flushed");
  world.sysctls.set(settingPath, "61");
  const done = await enter(task, subject, (here) => repair(task, here, recordOf(task, here)));
  expect(done).toEqual({ families, backend: "nft", changed: families });
  expect([ours(world), world.sysctls.get(settingPath)]).toEqual([all, "90"]);
  const sinceBootMs = expect.any(Number);
  expect(world.store.read(subject.key)).toEqual({ ...before, sinceBootMs });
});

test("redirect() takes out what earlier rules of the netns had, and itself has not", async () => {
  const { world, task } = await redirected();
  const before = world.store.read(subject.key);
  if (before === undefined) throw new Error("no record of the attachment");
  const jump = "-A OUTPUT -j OLD_OUTPUT";
  const rulesets = before.rulesets.map((one) => ({
    ...one,
    tables: one.tables.map((table) => ({
      ...table,
      chains: [...table.chains, { name: "OLD_OUTPUT", rules: [] }],
      placed: [...table.placed, { hook: "OUTPUT" as const, rule: jump }],
    })),
  }));
  world.store.write({ ...before, rulesets });
  const old = [":OLD_OUTPUT - [0:0]", jump];
  for (const tool of ["iptables-nft", "ip6tables-nft"] as const) {
    const saved = world.iptables.save(netnsPath, tool);
    world.iptables.load(netnsPath, tool, saved.replace("COMMIT", `${old.join("\n")}\nCOMMIT`));
  }
  const { plan } = settingsWith();
  await enter(task, subject, (here) => redirect(task, here, plan));
  expect(world.iptables.save(netnsPath, "iptables-nft")).not.toContain("OLD_OUTPUT");
  expect(ours(world)).toEqual(all);
  expect(world.store.read(subject.key)?.rulesets).toEqual(before.rulesets);
});

test("redirect() takes back all of what it put in the place of earlier rules", async () => {
  const { world, task } = await redirected();
  const { plan } = settingsWith();
  const rulesets = plan.intent.rulesets.map((one) => ({
    ...one,
    tables: one.tables.map((table) => ({
      ...table,
      chains: [...table.chains, { name: "NEW_OUTPUT", rules: [] }],
      placed: [...table.placed, { hook: "OUTPUT" as const, rule: "-A OUTPUT -j NEW_OUTPUT" }],
    })),
  }));
  const onRules = () => {
    throw new Error("the disk is full");
  };
  const intent = { ...plan.intent, rulesets };
  const work = enter(task, subject, (here) => redirect(task, here, { ...plan, intent, onRules }));
  await expect(work).rejects.toThrow("the disk is full");
  expect(world.iptables.save(netnsPath, "iptables-nft")).not.toContain("NEW_OUTPUT");
  expect([ours(world), await look(task)]).toEqual([all, { kind: "as-intended" }]);
});

test("redirect() forgets a setting that nothing is wished for any more", async () => {
  const { world, task } = await redirected({ "close-wait-timeout": "90s" });
  expect(world.store.read(subject.key)?.settings).toEqual([
    { name: setting, value: "90", before: "60" },
  ]);
  const { plan } = settingsWith();
  await enter(task, subject, (here) => redirect(task, here, plan));
  expect([world.sysctls.get(settingPath), world.store.read(subject.key)?.settings]).toEqual([
    "60",
    [],
  ]);
});

test("redirect() writes down what was warned of, and with what the rules were written", async () => {
  const world = makeWorld();
  for (const program of ["restore", "save"]) world.programs.delete(`ip6tables-nft-${program}`);
  const { settings, plan } = settingsWith();
  const task = taskIn(world, settings);
  const warned = ["the pod was said to be odd"];
  const required = ["ipv4"] as const;
  await enter(task, subject, (here) => redirect(task, here, { ...plan, required, warned }));
  expect(world.store.read(subject.key)).toMatchObject({
    profile: "linkerd",
    tools: [{ family: "ipv4", save: "/sbin/iptables-nft-save", version: "1.8.9 (nf_tables)" }],
    warnings: warned,
  });
});

test("clean() takes rules and settings back, and forgets the attachment", async () => {
  const { world, task } = await redirected({ "close-wait-timeout": "90s" });
  expect(await clean(task, subject)).toEqual({ changed: families, isForgotten: true });
  expect([ours(world), world.sysctls.get(settingPath)]).toEqual([none, "60"]);
  expect([world.store.records.size, world.open]).toEqual([0, new Set()]);
  expect(await clean(task, subject)).toEqual({ isForgotten: true });
});

test("clean() keeps the record of a netns that it could not clean", async () => {
  const { world, task } = await redirected();
  world.execFaults.push({ timedOut: true });
  expect(await clean(task, subject)).toEqual({ isForgotten: false });
  expect([ours(world), world.store.records.size]).toEqual([all, 1]);
  expect(world.lines).toMatchObject([{ level: "warn" }]);
});

test("attachedTo() knows the netns again by number, not by path", async () => {
  const { task } = await redirected();
  const netns = { path: netnsPath, fd: 9, handle: "/n", device: 4, inode: 2 };
  expect(attachedTo(task, { key: subject.key, netns })).toMatchObject({
    earlier: { ifName: "eth0" },
    own: undefined,
    latest: undefined,
  });
});

test("clean() fails where the record cannot be taken away", async () => {
  const { world, task } = await redirected();
  const removeThis = () => {
    throw new Error("EACCES: permission denied");
  };
  const stuck: Task = { ...task, store: { ...task.store, removeThis } };
  await expect(clean(stuck, subject)).rejects.toThrow("EACCES");
  expect([ours(world), world.open, world.store.locked]).toEqual([none, new Set(), new Set()]);
});
