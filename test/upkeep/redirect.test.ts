// ADD's work on the tables when something is in its way: tools that refuse, programs that interfere, rules of ours in the
// other backend. It ends right, or with the whole error and nothing half-way.
import { describe, expect, test } from "vitest";
import type { Output } from "../../src/command/run.ts";
import { longestRestoreBytes } from "../../src/netfilter/restore.ts";
import { cni, conf, failed, loadState, own, saved, succeeded, withLinkerd } from "../fake/call.ts";
import type { Event } from "../fake/iptables.ts";
import { makeWorld, netnsPath, type World } from "../fake/world.ts";
import { complete, outboundJump, states } from "../lab/states.ts";

const families = ["ipv4", "ipv6"] as const;
const result = succeeded(JSON.stringify(conf.prevResult));
const ours = (world: World, backend: "nft" | "legacy") =>
  families.map((family) => own(world, backend, family));
const all = [complete, complete];
const none = [[], []];

const auto = withLinkerd({ "iptables-mode": "auto" });
const restore4 = "iptables-nft-restore";
const restore6 = "ip6tables-nft-restore";
const save4 = "iptables-nft-save";
const fails = (program: Event["program"], status: number, stderr: string): Event => {
  return { program, fails: { status, stderr } };
};
const prints = (stdout: string): Event => ({ program: save4, fails: { stdout } });
const times = (count: number, event: Event) => new Array<Event>(count).fill(event);

const lock = "Another app is currently holding the xtables lock.";
const odd = "iptables-restore: line 99 failed";
const hooked = "line 4: RULE_APPEND failed (Invalid argument): rule in chain OUTPUT";
const noTable =
  "iptables-restore v1.8.9 (legacy): can't initialize iptables table `nat': Table does not exist";
const native = "Table `nat' is incompatible, use 'nft' tool.";
const shell = "sh: 1: /sbin/iptables-nft-restore: not found";
const nonsense = 'iptables-save printed a line outside of any table: "x"';

const advice = {
  none: "see the tool's message; nothing of ours is left half-way",
  lock: "another program is changing the rules; try again",
  noNat:
    "the kernel has no nat table for this backend: modprobe iptable_nat (ip6table_nat), or use nft",
  native:
    "rules written by nft itself stand in the nat table, so iptables cannot show it; remove them or use another table",
  install: "the program cannot be run: install iptables",
  others:
    "another program keeps changing the rules in this netns, or save and restore are not of one version",
};

const at4 = "/sbin/iptables-nft-restore (nft, ipv4, table nat)";
const at6 = "/sbin/ip6tables-nft-restore (nft, ipv6, table nat)";
const atHook = "/sbin/iptables-nft-restore (nft, ipv4, table nat, chain OUTPUT)";
const refused = (at: string, said: string, details = advice.none) =>
  failed(101, `${at} failed: ${said}`, details);

/** What is in the way for a while is tried again. */
const passing: [what: string, events: Event[], execs: number][] = [
  ["the lock is held", [fails(restore4, 4, lock)], 2],
  ["the lock is held three times", times(3, fails(restore4, 4, lock)), 4],
  ["an unknown failure comes twice", times(2, fails(restore6, 1, odd)), 3],
  ["another one comes each time", ["a", "b", "c"].map((said) => fails(restore4, 1, said)), 4],
  ["the table cannot be read once", [fails(save4, 1, "Interrupted system call")], 2],
  ["the save is not understood once", [prints("x\n")], 2],
];

test.each(passing)("ADD ends right when %s", async (_, events, execs) => {
  const world = makeWorld();
  world.iptables.events.push(...events);
  expect(await cni(world, "ADD")).toEqual(result);
  expect(ours(world, "nft")).toEqual(all);
  expect(world.lines).toMatchObject([{ message: "done", changed: families, execs }]);
});

/** What stays in the way is an error, and neither family has anything of ours. */
const lasting: [what: string, events: Event[], error: Output][] = [
  ["one family is refused alike", times(3, fails(restore4, 1, odd)), refused(at4, odd)],
  ["the other is", times(3, fails(restore6, 1, odd)), refused(at6, odd)],
  ["a hook refuses", times(3, fails(restore4, 4, hooked)), refused(atHook, hooked)],
  ["nothing is said", times(3, fails(restore4, 1, "")), refused(at4, "exit status 1")],
  ["the kernel has no table", [fails(restore6, 3, noTable)], refused(at6, noTable, advice.noNat)],
  ["no such program is", [fails(restore4, 127, shell)], refused(at4, shell, advice.install)],
  ["native rules hide the table", [prints(`# ${native}\n`)], refused(at4, native, advice.native)],
  [
    "the save is not understood",
    times(3, prints("x\n")),
    refused(at4.replace("restore", "save"), nonsense),
  ],
  [
    "the lock is held for ever",
    times(8, fails(restore4, 4, lock)),
    failed(11, `${at4} failed in 8 tries: ${lock}`, advice.lock),
  ],
];

test.each(lasting)("ADD fails, and leaves nothing, when %s", async (_, events, error) => {
  const world = makeWorld();
  world.iptables.events.push(...events);
  expect(await cni(world, "ADD")).toEqual(error);
  expect(ours(world, "nft")).toEqual(none);
  expect(world.store.records.size).toBe(0);
  expect(world.open).toEqual(new Set());
});

function flushing(world: World): Event {
  const meanwhile = () =>
    world.iptables.load(netnsPath, "iptables-nft", states["its rules flushed"]);
  return { program: save4, meanwhile };
}

test("ADD ends right when another program flushes the table in between", async () => {
  const world = makeWorld();
  world.iptables.events.push(...times(3, flushing(world)));
  expect(await cni(world, "ADD")).toEqual(result);
  expect(ours(world, "nft")).toEqual(all);
});

test("ADD gives up when another program never stops to flush the table", async () => {
  const world = makeWorld();
  world.iptables.events.push(...times(8, flushing(world)));
  const error = failed(11, `${at4}: the rules did not stay as written in 8 tries`, advice.others);
  expect(await cni(world, "ADD")).toEqual(error);
});

test("ADD gives up when its time is over", async () => {
  const world = makeWorld();
  const meanwhile = () => {
    world.time.ms += 20_000;
  };
  world.iptables.events.push({ ...fails(restore4, 4, lock), meanwhile });
  const error = failed(11, `${at4} failed in 1 tries: ${lock}`, advice.lock);
  expect(await cni(world, "ADD")).toEqual(error);
});

test("ADD takes nothing back that was there before", async () => {
  const world = makeWorld();
  loadState(world, "nft", "the outbound jump missing");
  world.iptables.events.push(...times(4, fails(restore6, 1, odd)));
  expect(await cni(world, "ADD")).toEqual(refused(at6, odd));
  expect(own(world, "nft", "ipv4")).toEqual(complete);
  expect(own(world, "nft", "ipv6")).toEqual(complete.filter((line) => line !== outboundJump));
});

test("ADD takes back what was loaded when its child is killed in between", async () => {
  const world = makeWorld();
  world.execFaults.push((did) => {
    const statuses = did.outputs[0]?.replace(/^[23] 0 0$/gm, "") ?? "";
    return { ...did, exitCode: 137, outputs: [statuses, ...did.outputs.slice(1)] };
  });
  const open =
    "/sbin/iptables-nft-save (nft, ipv4, table nat) and /sbin/ip6tables-nft-save (nft, ipv6, table nat)";
  expect(await cni(world, "ADD")).toEqual(
    failed(
      11,
      `could not work in the netns of pod emoji/web: ${open} did not end within the deadline; run it by hand to see what it waits for`,
      "nothing of ours is left half-way; a family's rules are loaded all or not at all",
    ),
  );
  expect(world.iptables.written.map(({ tool }) => tool)).toEqual([
    "iptables-nft",
    "ip6tables-nft",
    "iptables-nft",
    "ip6tables-nft",
  ]);
  expect(ours(world, "nft")).toEqual(none);
});

test("ADD refuses rules that are too long to load, and runs nothing", async () => {
  const world = makeWorld();
  const ports = Array.from({ length: 20_000 }, (_, i) => 3 * i + 1);
  const change = withLinkerd({ "inbound-ports-to-ignore": ports });
  const { exitCode, stdout } = await cni(world, "ADD", change);
  const { msg, ...rest } = JSON.parse(stdout);
  expect(exitCode).toBe(1);
  expect(rest).toEqual({
    cniVersion: "1.1.0",
    code: 7,
    details: "exclude ranges of ports instead of thousands of single ports",
  });
  expect(msg).toMatch(
    new RegExp(`^the ipv4 rules are too long to load: \\d+ bytes, at most ${longestRestoreBytes}$`),
  );
  expect(world.asked).toEqual([]);
});

const backendOf = (world: World) => {
  const record = world.store.records.get("net,c0ffee,eth0.json");
  return [record?.backend, record?.backendReason];
};

describe("with own chains in the other backend", () => {
  test("ADD takes them out when the conf names its backend", async () => {
    const world = makeWorld();
    loadState(world, "legacy", "all in order");
    expect(await cni(world, "ADD")).toEqual(result);
    expect([ours(world, "nft"), ours(world, "legacy")]).toEqual([all, none]);
    expect(backendOf(world)).toEqual(["nft", "the conf's iptables-mode"]);
    expect(world.lines).toMatchObject([
      { message: "own chains were in both backends", kept: "nft", cleaned: "legacy" },
      { message: "done", backend: "nft", changed: families },
    ]);
  });

  test("ADD stays with them when the choice is free and nothing is in the first", async () => {
    const world = makeWorld();
    loadState(world, "legacy", "the outbound jump missing");
    expect(await cni(world, "ADD", auto)).toEqual(result);
    expect([ours(world, "nft"), ours(world, "legacy")]).toEqual([none, all]);
    expect(backendOf(world)).toEqual(["legacy", "own chains were there"]);
  });

  test("ADD keeps the chosen one when both have them", async () => {
    const world = makeWorld();
    loadState(world, "nft", "the outbound jump missing");
    loadState(world, "legacy", "all in order");
    expect(await cni(world, "ADD", auto)).toEqual(result);
    expect([ours(world, "nft"), ours(world, "legacy")]).toEqual([all, none]);
  });

  test("ADD takes them out of the one family that has them", async () => {
    const world = makeWorld();
    world.iptables.load(netnsPath, "ip6tables-legacy", states["all in order"]);
    expect(await cni(world, "ADD")).toEqual(result);
    expect([ours(world, "nft"), ours(world, "legacy")]).toEqual([all, none]);
  });

  test("ADD leaves the pod redirected at every instant", async () => {
    const world = makeWorld();
    loadState(world, "legacy", "all in order");
    const seen: boolean[] = [];
    const meanwhile = () => {
      const both = families.map((family) => [
        own(world, "nft", family),
        own(world, "legacy", family),
      ]);
      seen.push(both.every((lines) => JSON.stringify(lines).includes(JSON.stringify(complete))));
    };
    const programs = ["nft-restore", "nft-save", "legacy-restore", "legacy-save"] as const;
    for (const program of [...programs, ...programs]) {
      world.iptables.events.push({ program: `iptables-${program}`, meanwhile });
      world.iptables.events.push({ program: `ip6tables-${program}`, meanwhile });
    }
    await cni(world, "ADD");
    expect(seen.length).toBeGreaterThan(8);
    expect(seen.filter((redirected) => !redirected)).toEqual([]);
  });
});

const strangers: [when: string, stdout: string, warning: object][] = [
  [
    "someone else redirects there",
    "*nat\n:OUTPUT ACCEPT [0:0]\n-A OUTPUT -p tcp -j REDIRECT --to-ports 1\nCOMMIT\n",
    {
      message:
        "rules of someone else's redirect traffic in the other backend; which of the two wins is not ours to decide",
      rules: ["-A OUTPUT -p tcp -j REDIRECT --to-ports 1"],
    },
  ],
  [
    "native rules hide it",
    `# ${native}\n`,
    {
      message:
        "the other backend's nat table cannot be shown; whether it redirects as well is not known",
      said: native,
    },
  ],
];

test.each(strangers)(
  "ADD warns, and leaves the other backend alone, when %s",
  async (_, stdout, warning) => {
    const world = makeWorld();
    const legacy = withLinkerd({ "iptables-mode": "legacy" });
    world.iptables.events.push(prints(stdout));
    const before = saved(world, "nft", "ipv4");
    expect(await cni(world, "ADD", legacy)).toEqual(result);
    expect(saved(world, "nft", "ipv4")).toBe(before);
    const at = { level: "warn", backend: "nft", family: "ipv4" };
    expect(world.lines[0]).toEqual({ ...at, ...warning });
  },
);

/** A world in which nft was found to be the node's backend. */
function ofNft(): World {
  const world = makeWorld();
  const decision = { backend: "nft", reason: "found before", provisional: false } as const;
  world.memory.keep({ proven: [{ backend: "nft", family: "ipv4" }], decision });
  return world;
}

test("ADD takes the other backend when the first refuses and nobody named it", async () => {
  const world = ofNft();
  world.iptables.events.push(fails(restore6, 3, noTable));
  expect(await cni(world, "ADD", auto)).toEqual(result);
  expect([ours(world, "nft"), ours(world, "legacy")]).toEqual([none, all]);
  expect(backendOf(world)).toEqual(["legacy", "nft refused"]);
  expect(world.lines).toMatchObject([
    { level: "warn", message: "the other backend is taken instead", backend: "legacy" },
    { level: "info", message: "done", backend: "legacy", changed: families },
  ]);
});

test("ADD gives both reasons when the other backend refuses too", async () => {
  const world = ofNft();
  world.iptables.events.push(
    fails(restore6, 3, noTable),
    fails("iptables-legacy-restore", 3, noTable),
  );
  const then = `then /sbin/iptables-legacy-restore (legacy, ipv4, table nat) failed: ${noTable}: ${advice.noNat}`;
  const error = refused(at6, noTable, `${advice.noNat}; ${then}`);
  expect(await cni(world, "ADD", auto)).toEqual(error);
  expect([ours(world, "nft"), ours(world, "legacy")]).toEqual([none, none]);
});

const staying: [when: string, prepare: (world: World) => void, error: Output][] = [
  [
    "the other backend has no programs",
    (world) => {
      world.programs.delete("iptables-legacy-save");
      world.iptables.events.push(fails(restore6, 3, noTable));
    },
    refused(at6, noTable, advice.noNat),
  ],
  [
    "the table cannot be shown",
    (world) => world.iptables.events.push(prints(`# ${native}\n`)),
    refused(at4, native, advice.native),
  ],
  [
    "the refusal is one that may pass",
    (world) => world.iptables.events.push(...times(8, fails(restore4, 4, lock))),
    failed(11, `${at4} failed in 8 tries: ${lock}`, advice.lock),
  ],
];

test.each(staying)(
  "ADD stays with the first backend's error when %s",
  async (_, prepare, error) => {
    const world = ofNft();
    prepare(world);
    expect(await cni(world, "ADD", auto)).toEqual(error);
    expect([ours(world, "nft"), ours(world, "legacy")]).toEqual([none, none]);
  },
);
