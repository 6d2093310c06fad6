// The table of what may be thrown: each row once as a function, and once through a whole call.
import { expect, test } from "vitest";
import { CniError, errorCode } from "../../src/cni/error.ts";
import { toCniError } from "../../src/command/failure.ts";
import type { Deps } from "../../src/deps.ts";
import { Fault } from "../../src/fault.ts";
import { BatchError } from "../../src/netfilter/iptables/client.ts";
import type { ExecResult } from "../../src/netns/exec.ts";
import { cni, failed } from "../fake/call.ts";
import { makeMemoryStore } from "../fake/store.ts";
import { cniError, type Thrown } from "../fake/thrown.ts";
import { makeWorld, netnsPath } from "../fake/world.ts";

const halfway = "nothing of ours is left half-way; a family's rules are loaded all or not at all";
const short =
  "processes, memory or descriptors are short: see pids.max and memory.max of the runtime's cgroup, and the node's limits; try again";
const fault = "this is a fault of sluice; please report it with the log";
const full = Object.assign(new Error("ENOSPC: no space left on device, write"), {
  syscall: "write",
});

const rows: [thrown: unknown, error: Thrown][] = [
  [new CniError(errorCode.drift, "m", { details: "d" }), cniError(100, "m", "d")],
  [
    new BatchError("too late", { isPassing: true }),
    cniError(11, "could not work in the netns of pod a/b: too late", halfway),
  ],
  [
    new BatchError("no shell"),
    cniError(102, "could not work in the netns of pod a/b: no shell", halfway),
  ],
  [
    new BatchError("a process could not be started: sluice: 8: Cannot fork", { isPassing: true }),
    cniError(
      11,
      "could not work in the netns of pod a/b: a process could not be started: sluice: 8: Cannot fork",
      short,
    ),
  ],
  [
    new BatchError("nsenter: cannot open /proc/1/fd/9: Permission denied"),
    cniError(
      102,
      "could not work in the netns of pod a/b: nsenter: cannot open /proc/1/fd/9: Permission denied",
      "nsenter needs root with CAP_SYS_ADMIN (and CAP_SYS_PTRACE) to enter a netns",
    ),
  ],
  [full, cniError(5, "write failed for pod a/b", "ENOSPC: no space left on device, write")],
  [
    new TypeError("x is not a function"),
    cniError(999, "internal error for pod a/b: x is not a function", fault),
  ],
  ["a string", cniError(999, "internal error for pod a/b: a string", fault)],
  [undefined, cniError(999, "internal error for pod a/b: undefined", fault)],
];

test.each(rows)("toCniError() makes of %s its row's error", (thrown, error) => {
  const { code, message, details } = toCniError(thrown, "pod a/b");
  expect({ code, message, details }).toEqual(error);
});

test("toCniError() keeps what was thrown as the cause, for the log", () => {
  expect(toCniError(full, "pod a/b").cause).toBe(full);
  const error = new CniError(errorCode.drift, "m");
  expect(toCniError(error, "pod a/b")).toBe(error);
});

const tooLate = [
  ...["iptables-legacy-save (legacy, ipv4", "ip6tables-legacy-save (legacy, ipv6"],
  ...["iptables-nft-restore (nft, ipv4", "ip6tables-nft-restore (nft, ipv6"],
].map((tool) => `/sbin/${tool}, table nat)`);
const ended = (how: string) => entering(`${tooLate.join(" and ")} ${how}`);
const late = "did not end within the deadline; run it by hand to see what it waits for";
const entering = (said: string) => `could not work in the netns of pod emoji/web: ${said}`;
const children: [when: string, result: Partial<ExecResult>, error: ReturnType<typeof failed>][] = [
  ["it does not end", { exitCode: undefined, timedOut: true }, failed(11, ended(late), halfway)],
  ["timeout kills it", { exitCode: 137 }, failed(11, ended(late), halfway)],
  [
    "it cannot be started",
    { exitCode: undefined, startError: "spawn /sbin/timeout ENOENT" },
    failed(102, entering("spawn /sbin/timeout ENOENT"), halfway),
  ],
  [
    "there is no process for it",
    { exitCode: undefined, startError: "spawnSync /sbin/timeout EAGAIN" },
    failed(11, entering("a process could not be started: spawnSync /sbin/timeout EAGAIN"), short),
  ],
  [
    "the netns is not entered",
    {
      exitCode: 1,
      outputs: [
        "",
        "nsenter: reassociate to namespace 'ns/net' failed: Invalid argument\n",
        "",
        "",
        "",
      ],
    },
    failed(
      102,
      entering(
        "entering the netns failed with exit status 1: nsenter: reassociate to namespace 'ns/net' failed: Invalid argument",
      ),
      halfway,
    ),
  ],
  [
    "it says nothing",
    { exitCode: 2 },
    failed(102, entering("entering the netns failed with exit status 2: no message"), halfway),
  ],
];

test.each(children)("ADD answers for its child when %s", async (_, result, error) => {
  const world = makeWorld();
  world.execFaults.push(result);
  expect(await cni(world, "ADD")).toEqual(error);
  expect(world.open).toEqual(new Set());
});

const netns: [when: string, error: Fault, code: number][] = [
  ["it is gone", new Fault("netns-gone", "m", { details: "d" }), 3],
  ["it is the node's own", new Fault("netns-own", "m", { details: "d" }), 8],
  ["it is none", new Fault("netns-unusable", "m", { details: "d" }), 102],
];

test.each(netns)("ADD and CHECK answer for the netns when %s", async (_, error, code) => {
  const world = makeWorld();
  world.netns.set(netnsPath, error);
  expect(await cni(world, "ADD")).toEqual(failed(code, "m", "d"));
  expect(await cni(world, "CHECK")).toEqual(failed(code, "m", "d"));
  expect(world.asked).toEqual([]);
});

const throwing = (error: unknown) => () => {
  throw error;
};
const noSpace = failed(5, "write failed for pod emoji/web", full.message);
const bug = failed(999, "internal error for pod emoji/web: oh no", fault);
const worlds: [when: string, change: Partial<Deps>, error: ReturnType<typeof failed>][] = [
  [
    "the record cannot be written",
    { openStore: () => ({ ...makeMemoryStore(), write: throwing(full) }) },
    noSpace,
  ],
  [
    "the record cannot be read",
    { openStore: () => ({ ...makeMemoryStore(), read: throwing(full) }) },
    noSpace,
  ],
  ["something is not as we thought", { exec: throwing(new Error("oh no")) }, bug],
];

test.each(worlds)("ADD answers by the table when %s", async (_, change, error) => {
  const world = makeWorld(change);
  expect(await cni(world, "ADD")).toEqual(error);
  expect(world.open).toEqual(new Set());
});
