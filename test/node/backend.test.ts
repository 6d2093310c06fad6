// Which backend a call takes, why, and what it starts to find that out.
import { expect, test } from "vitest";
import type { Backend } from "../../src/netfilter/table.ts";
import type { Knowledge } from "../../src/node/knowledge.ts";
import { cni, conf, failed, succeeded, withLinkerd } from "../fake/call.ts";
import type { ToolName } from "../fake/iptables.ts";
import { makeMemory } from "../fake/store.ts";
import { makeNetns, makeWorld, type World } from "../fake/world.ts";

const auto = withLinkerd({ "iptables-mode": "auto" });
const result = succeeded(JSON.stringify(conf.prevResult));

/** The record's choice and reason, and how many children ADD started. */
async function chosen(world: World, change = auto): Promise<[Backend, string, number]> {
  world.asked.length = 0;
  expect(await cni(world, "ADD", change)).toEqual(result);
  const record = world.store.records.get("net,c0ffee,eth0.json");
  return [record?.backend ?? "nft", record?.backendReason ?? "", world.asked.length];
}

function hint(world: World, tool: ToolName, chain: string): void {
  world.iptables.mangle.set(`host ${tool}`, [chain]);
}

const [kubelet, canary] = ["KUBE-IPTABLES-HINT", "KUBE-KUBELET-CANARY"];
const [ofNft, ofLegacy] = ["nft", "legacy"].map((one) => `the kubelet's hint chains are in ${one}`);
const hints: [when: string, tools: [ToolName, string][], found: [Backend, string | undefined]][] = [
  ["nft has the hint", [["iptables-nft", kubelet]], ["nft", ofNft]],
  ["legacy has the hint", [["iptables-legacy", kubelet]], ["legacy", ofLegacy]],
  ["only ip6tables has it", [["ip6tables-legacy", kubelet]], ["legacy", ofLegacy]],
  ["it is an older kubelet's", [["iptables-legacy", canary]], ["legacy", ofLegacy]],
  [
    "both have it",
    [
      ["iptables-legacy", canary],
      ["iptables-nft", canary],
    ],
    ["nft", `${ofNft} (and legacy has them too: left from before?)`],
  ],
];

test.each(hints)("ADD follows the node's kubelet when %s", async (_, tools, found) => {
  const world = makeWorld();
  for (const [tool, chain] of tools) hint(world, tool, chain);
  expect(await chosen(world)).toEqual([...found, 2]);
  expect(await chosen(world)).toEqual([...found, 1]);
});

test("ADD tries nft first where there is no hint, and remembers when it worked", async () => {
  const world = makeWorld();
  expect(await chosen(world)).toEqual(["nft", "nft works on this node", 3]);
  const decision = { backend: "nft", reason: "nft works on this node", provisional: false };
  expect(world.memory.read()).toEqual({
    proven: [
      { backend: "nft", family: "ipv4" },
      { backend: "nft", family: "ipv6" },
    ],
    decision,
  });
  expect(await chosen(world)).toEqual(["nft", "nft works on this node", 1]);
});

test("ADD takes legacy when the trial of nft fails", async () => {
  const world = makeWorld();
  const stderr =
    "iptables-nft-restore: Could not fetch rule set generation id: Protocol not supported";
  world.iptables.events.push({ program: "iptables-nft-restore", fails: { status: 1, stderr } });
  const [backend, reason] = await chosen(world);
  expect([backend, reason]).toEqual(["legacy", "legacy works on this node"]);
});

test("ADD says what each backend said when none works", async () => {
  const world = makeWorld();
  const stderr = "iptables-restore: Permission denied";
  for (const program of ["iptables-nft-restore", "iptables-legacy-restore"] as const) {
    world.iptables.events.push({ program, fails: { status: 1, stderr } });
  }
  const said = (backend: Backend) =>
    `${backend}: /sbin/iptables-${backend}-restore (${backend}, ipv4, table nat) failed: ${stderr} (root with CAP_NET_ADMIN is needed; with SELinux, look for a denial)`;
  expect(await cni(world, "ADD", auto)).toEqual(
    failed(
      101,
      "neither nft nor legacy iptables works on this node",
      `${said("nft")}; ${said("legacy")}`,
    ),
  );
  expect(world.store.records.size).toBe(0);
});

const decided = { backend: "legacy", reason: "found before", provisional: false } as const;
const knowledge: [when: string, known: Knowledge, found: [Backend, string, number]][] = [
  [
    "it was found out",
    { proven: [{ backend: "legacy", family: "ipv4" }], decision: decided },
    ["legacy", "found before", 1],
  ],
  [
    "it was tried, and no hint has come",
    { proven: [], decision: { ...decided, provisional: true } },
    ["legacy", "found before", 2],
  ],
];

test.each(knowledge)("ADD takes what is known when %s", async (_, known, found) => {
  const world = makeWorld();
  world.memory.keep(known);
  expect(await chosen(world)).toEqual(found);
});

test("ADD takes the hint that came after the trial", async () => {
  const world = makeWorld();
  world.memory.keep({ proven: [], decision: { ...decided, provisional: true } });
  hint(world, "iptables-nft", kubelet);
  expect(await chosen(world)).toEqual(["nft", ofNft, 2]);
});

const named: [mode: string, found: [Backend, string, number]][] = [
  ["nft", ["nft", "the conf's iptables-mode", 1]],
  ["legacy", ["legacy", "the conf's iptables-mode", 1]],
];

test.each(named)("ADD takes %s when the conf says so, whatever the hints", async (mode, found) => {
  const world = makeWorld();
  for (const tool of ["iptables-nft", "iptables-legacy"] as const) hint(world, tool, kubelet);
  expect(await chosen(world, withLinkerd({ "iptables-mode": mode }))).toEqual(found);
});

test("ADD leaves nothing behind where it looked and tried", async () => {
  const world = makeWorld();
  await cni(world, "ADD", auto);
  const places = world.iptables.written.map(({ place }) => place);
  expect(places.filter((place) => place === "host")).toEqual([]);
  expect(world.iptables.save("host", "iptables-legacy")).toBe("");
});

const install = "install iptables 1.8 or later, or set linkerd.iptables-mode to what is there";
const missing: [when: string, mode: string, gone: string[], families: string][] = [
  ["restore is missing", "nft", ["iptables-nft-restore"], "ipv4"],
  ["save is missing", "nft", ["ip6tables-nft-save"], "ipv6"],
  [
    "both families miss it",
    "legacy",
    ["iptables-legacy-save", "ip6tables-legacy-restore"],
    "ipv4 and ipv6",
  ],
];

test.each(missing)(
  "ADD says which programs it needs when %s",
  async (...[, mode, gone, families]) => {
    const world = makeWorld();
    for (const name of gone) world.programs.delete(name);
    expect(await cni(world, "ADD", withLinkerd({ "iptables-mode": mode }))).toEqual(
      failed(101, `no iptables programs of backend ${mode} for ${families} on the node`, install),
    );
    expect(world.asked).toEqual([]);
  },
);

test("ADD says that there are no plain programs when the conf wants them", async () => {
  const world = makeWorld();
  expect(await cni(world, "ADD", withLinkerd({ "iptables-mode": "plain" }))).toEqual(
    failed(
      101,
      "no iptables programs under the plain names for ipv4 and ipv6 on the node",
      install,
    ),
  );
});

/** The same conf, about a pod that has no rules yet. */
function another(world: World, path: string) {
  world.netns.set(path, makeNetns(path, 10 + world.netns.size));
  return { ...auto, env: { CNI_NETNS: path } };
}

/** Looks at the node's hints that fail: what the tool said, and how ADD goes on. */
const blind = { status: 4, stderr: "iptables-legacy-save: Bus error" };

test("ADD asks again for hints that it could not see, whatever pods were set meanwhile", async () => {
  const world = makeWorld();
  hint(world, "iptables-legacy", kubelet);
  world.iptables.events.push({ program: "iptables-legacy-save", fails: blind });
  expect(await chosen(world)).toEqual(["nft", "nft works on this node", 3]);
  expect(world.lines[0]).toMatchObject({
    level: "warn",
    message: "the kubelet's hint chains could not all be looked for",
    unseen: [`/sbin/iptables-legacy-save (legacy, ipv4): ${blind.stderr}`],
  });
  const decision = { provisional: true, incomplete: true };
  expect(world.memory.read().decision).toMatchObject(decision);
  expect(await chosen(world, another(world, "/run/netns/b"))).toEqual(["legacy", ofLegacy, 2]);
  expect(await chosen(world, another(world, "/run/netns/c"))).toEqual(["legacy", ofLegacy, 1]);
});

test("ADD keeps its choice when a second look sees all, and no hint", async () => {
  const world = makeWorld();
  hint(world, "iptables-legacy", "UNRELATED");
  world.iptables.events.push({ program: "iptables-legacy-save", fails: blind });
  await chosen(world);
  expect(await chosen(world)).toEqual(["nft", "nft works on this node", 2]);
  expect(await chosen(world)).toEqual(["nft", "nft works on this node", 1]);
});

test("ADD asks again for nft's hints when only legacy's could be seen", async () => {
  const world = makeWorld();
  hint(world, "iptables-legacy", kubelet);
  hint(world, "iptables-nft", kubelet);
  for (const program of ["iptables-nft-save", "ip6tables-nft-save"] as const) {
    world.iptables.events.push({ program, fails: { status: 4, stderr: "Bus error" } });
  }
  expect(await chosen(world)).toEqual(["legacy", ofLegacy, 2]);
  expect(world.memory.read().decision).toMatchObject({ backend: "legacy", incomplete: true });
  const [backend] = await chosen(world, another(world, "/run/netns/b"));
  expect(backend).toBe("nft");
});

test("ADD makes a choice by trial for good with the first pod, also where STATUS has proven it", async () => {
  const world = makeWorld();
  await cni(world, "STATUS", auto);
  expect(world.memory.read().decision).toMatchObject({ backend: "nft", provisional: true });
  expect(await chosen(world)).toEqual(["nft", "nft works on this node", 2]);
  expect(world.memory.read().decision).toMatchObject({ backend: "nft", provisional: false });
  expect(await chosen(world)).toEqual(["nft", "nft works on this node", 1]);
});

test("ADD writes down nothing about the node when it learned nothing", async () => {
  const memory = makeMemory();
  const kept: Knowledge[] = [];
  const keep = (known: Knowledge) => {
    kept.push(known);
    memory.keep(known);
  };
  const world = makeWorld({ openMemory: () => ({ ...memory, keep }) });
  expect(await cni(world, "ADD", auto)).toEqual(result);
  expect(kept.length).toBeGreaterThan(0);
  kept.length = 0;
  expect(await cni(world, "ADD", auto)).toEqual(result);
  expect(kept).toEqual([]);
});
