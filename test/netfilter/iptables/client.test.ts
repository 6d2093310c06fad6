// How the tools are called: the child's argv, environment and deadline; and what is read from what it says.
import { expect, test } from "vitest";
import { BatchError, makeClient } from "../../../src/netfilter/iptables/client.ts";
import type { Job, Place } from "../../../src/netfilter/iptables/job.ts";
import type { ExecRequest, ExecResult } from "../../../src/netns/exec.ts";
import { rejectionOf } from "../../fake/thrown.ts";
import { makeNetns } from "../../fake/world.ts";

const netns = makeNetns("/proc/1/fd/9", 1);
const tools = (name: string, waits = true) => ({
  restore: `/r/${name}`,
  save: `/s/${name}`,
  waits,
});
const write: Job = {
  family: "ipv4",
  backend: "nft",
  tools: tools("nft4"),
  restore: "*nat\nCOMMIT\n",
};
const read: Job = { family: "ipv6", backend: "nft", tools: tools("nft6"), restore: "" };
const legacy: Job = { family: "ipv4", backend: "legacy", tools: tools("legacy4"), restore: "" };

type Node = { programs: string[]; mask: string[]; results: Partial<ExecResult>[]; left: number };

/** Runs jobs on a node, and gives what its children were asked for, besides what came of it. */
async function batch(place: Place, jobs: Job[], change: Partial<Node> = {}) {
  const { programs, mask, results, left } = {
    ...{
      programs: ["nsenter", "unshare", "timeout", "mount"],
      mask: [],
      results: [],
      left: 18_000,
    },
    ...change,
  };
  const asked: ExecRequest[] = [];
  const client = makeClient({
    toolbox: {
      find: (name) => (programs.includes(name) ? `/bin/${name}` : undefined),
      shell: "/bin/sh",
      env: { PATH: "/bin:/sbin", LC_ALL: "C" },
    },
    nssMask: () => mask,
    exec: (request) => {
      asked.push(request);
      const statuses = jobs.map((_, i) => `${i} 0 0\n`).join("");
      const ended = { exitCode: 0, timedOut: false, startError: "", outputs: [statuses] };
      return Promise.resolve({ ...ended, ...results.shift() });
    },
  });
  const outcome = client(place, jobs, left);
  const error = await rejectionOf(outcome);
  return { asked, error, outcomes: error === undefined ? await outcome : [] };
}

/** What stands ahead of the script, and what comes after it. */
function parts({ argv }: ExecRequest): [before: string, ...after: string[]] {
  const at = argv.indexOf("-c");
  return [argv.slice(0, at).join(" "), ...argv.slice(at + 2)];
}

const limit = "/bin/timeout -s KILL 18";

test("makeClient() enters the netns once, with a limit, for all jobs", async () => {
  const { asked } = await batch(netns, [write, read]);
  expect(asked.map(parts)).toEqual([
    [
      `${limit} /bin/nsenter --net=/proc/1/fd/9 -- /bin/sh`,
      ...["sluice", "", ""],
      ...["2", "/r/nft4", "/s/nft4", "nat", "", "5", "*nat\nCOMMIT\n"],
      ...["4", "", "/s/nft6", "nat", "", "5", ""],
    ],
  ]);
  expect(asked.map(({ env, outputs, timeoutMs }) => ({ env, outputs, timeoutMs }))).toEqual([
    {
      env: { PATH: "/bin:/sbin", LC_ALL: "C", XTABLES_LOCKFILE: "/proc/self/ns/net" },
      outputs: 5,
      timeoutMs: 19_000,
    },
  ]);
});

test("makeClient() puts jobs that may come to nothing first, and gives outcomes as asked", async () => {
  const { asked, outcomes } = await batch(netns, [write, legacy]);
  expect(asked.map((request) => parts(request).slice(4))).toEqual([
    [
      ...["2", "", "/s/legacy4", "", "/proc/self/net/ip_tables_names", "5", ""],
      ...["4", "/r/nft4", "/s/nft4", "nat", "", "5", "*nat\nCOMMIT\n"],
    ],
  ]);
  expect(outcomes.map(({ job }) => job)).toEqual([write, legacy]);
});

const spellings: [when: string, job: Job, args: string[]][] = [
  [
    "legacy is written to",
    { ...legacy, restore: "x" },
    ["2", "/r/legacy4", "/s/legacy4", "", "", "5", "x"],
  ],
  [
    "legacy is read for IPv6",
    { ...legacy, family: "ipv6" },
    ["2", "", "/s/legacy4", "", "/proc/self/net/ip6_tables_names", "5", ""],
  ],
  [
    "another table is read",
    { ...read, table: "mangle" },
    ["2", "", "/s/nft6", "mangle", "", "5", ""],
  ],
  [
    "restore cannot wait",
    { ...write, tools: tools("old", false) },
    ["2", "/r/old", "/s/old", "nat", "", "", "*nat\nCOMMIT\n"],
  ],
];

test.each(spellings)("makeClient() says in the job's arguments that %s", async (_, job, args) => {
  const { asked } = await batch(netns, [job]);
  expect(asked.map((request) => parts(request).slice(4))).toEqual([args]);
});

const mask = ["/etc/nsswitch.conf", "/var/run/nscd/socket"];
const places: [
  when: string,
  place: Place,
  node: Partial<Node>,
  before: string,
  hidden: string[],
][] = [
  ["in a netns of its own", "scratch", {}, `${limit} /bin/unshare --net -- /bin/sh`, ["", ""]],
  ["on the node", "host", {}, `${limit} /bin/sh`, ["", ""]],
  [
    "without timeout",
    netns,
    { programs: ["nsenter"] },
    "/bin/nsenter --net=/proc/1/fd/9 -- /bin/sh",
    ["", ""],
  ],
  [
    "with files hidden",
    netns,
    { mask },
    `${limit} /bin/nsenter --net=/proc/1/fd/9 -- /bin/unshare --mount --propagation slave -- /bin/sh`,
    ["/bin/mount", mask.join(" ")],
  ],
];

test.each(places)("makeClient() works %s", async (...[, place, node, before, hidden]) => {
  const { asked } = await batch(place, [write], node);
  expect(asked.map((request) => parts(request).slice(0, 4))).toEqual([
    [before, "sluice", ...hidden],
  ]);
});

test("makeClient() hides nothing from tools that only read", async () => {
  const { asked } = await batch(netns, [read], { mask });
  expect(asked.map((request) => parts(request)[3])).toEqual([""]);
});

test.each([
  ["", "unshare: unshare failed: Permission denied\n"],
  // What the netns has was told by then.
  ["ipv4 address 10.9.0.2\nipv6 possible\n", "mount: Permission denied\n"],
])("makeClient() does without hiding where that is refused: %j, %j", async (...outputs) => {
  const refused = { exitCode: 1, outputs };
  const { asked, outcomes } = await batch(netns, [write], { mask, results: [refused] });
  expect(asked.map((request) => parts(request)[3])).toEqual([mask.join(" "), ""]);
  expect(outcomes.length).toBe(1);
});

test("makeClient() gives each job its statuses, its words, and its table", async () => {
  const outputs = ["1 0 0\n0 4\n0 4 0\n", " no\n", "saved 4", "\n", "saved 6"];
  const { outcomes } = await batch(netns, [write, read], { results: [{ outputs }] });
  expect(outcomes).toEqual([
    { job: write, restoreStatus: 4, saveStatus: 0, saved: "saved 4", stderr: "no" },
    { job: read, restoreStatus: 0, saveStatus: 0, saved: "saved 6", stderr: "" },
  ]);
});

const [nft4, nft6] = ["/r/nft4 (nft, ipv4, table nat)", "/s/nft6 (nft, ipv6, table nat)"];
const late = "did not end within the deadline; run it by hand to see what it waits for";
const noFork = "fork system call failed: Resource temporarily unavailable";
const ends: [when: string, result: Partial<ExecResult>, problem: string][] = [
  [
    "it is too late",
    { timedOut: true, exitCode: undefined, outputs: [""] },
    `${nft4} and ${nft6} ${late}`,
  ],
  ["timeout ends it", { exitCode: 137, outputs: [""] }, `${nft4} and ${nft6} ${late}`],
  ["one job was done", { exitCode: 137, outputs: ["1 0 0\n"] }, `${nft4} ${late}`],
  [
    "only the save is open",
    { exitCode: 137, outputs: ["0 0\n1 0 0\n"] },
    `/s/nft4 (nft, ipv4, table nat) ${late}`,
  ],
  ["somebody kills it", { exitCode: undefined, outputs: ["0 0 0\n"] }, `${nft6} was killed`],
  ["it cannot start", { exitCode: undefined, startError: "ENOENT", outputs: [""] }, "ENOENT"],
  [
    "the netns is gone",
    { exitCode: 1, outputs: ["", "nsenter: no\nmore"] },
    "entering the netns failed with exit status 1: nsenter: no",
  ],
  [
    "Node cannot start it",
    { exitCode: undefined, startError: "spawnSync /bin/timeout EAGAIN", outputs: [""] },
    "a process could not be started: spawnSync /bin/timeout EAGAIN",
  ],
  [
    "timeout cannot start the rest",
    { exitCode: 125, outputs: ["", `timeout: ${noFork}\n`] },
    `a process could not be started: timeout: ${noFork}`,
  ],
  [
    "the shell cannot start one of two jobs",
    { exitCode: 2, outputs: ["", "", "", "sluice: 8: Cannot fork\n", ""] },
    "a process could not be started: sluice: 8: Cannot fork",
  ],
  [
    "the part that runs one of two jobs was ended",
    { exitCode: 0, outputs: ["1 0 0\n"] },
    `${nft4} was killed`,
  ],
  [
    "it is silent",
    { exitCode: 2, outputs: [""] },
    "entering the netns failed with exit status 2: no message",
  ],
];

test.each(ends)(
  "makeClient() says which program did not come to its end when %s",
  async (_, result, problem) => {
    const { error } = await batch(netns, [write, read], { results: [result] });
    expect(error).toBe(`BatchError: ${problem}`);
  },
);

const needs: [place: Place, program: string][] = [
  [netns, "nsenter"],
  ["scratch", "unshare"],
];

test.each(needs)("makeClient() in %s needs a program, and says so", async (place, program) => {
  const { error, asked } = await batch(place, [write], { programs: ["timeout"] });
  expect(error).toBe(`BatchError: ${program} is not on the node; install util-linux`);
  expect(asked).toEqual([]);
});

test("BatchError knows which texts had been loaded by then", async () => {
  const client = makeClient({
    toolbox: { find: (name) => name, shell: "/bin/sh", env: {} },
    nssMask: () => [],
    exec: () =>
      Promise.resolve({ exitCode: 137, timedOut: false, startError: "", outputs: ["1 0\n2 1\n"] }),
  });
  const second = { ...write, family: "ipv6" } as const;
  const third = { ...write, backend: "legacy" } as const;
  const error = await client(netns, [write, second, third], 1_000).catch(
    (thrown: unknown) => thrown,
  );
  expect(error instanceof BatchError && [error.isPassing, error.restored]).toEqual([
    true,
    [second],
  ]);
});

test("makeClient() does not take a shell that cannot fork for one that may not hide files", async () => {
  const results = [{ exitCode: 2, outputs: ["", "sluice: 8: Cannot fork\n"] }];
  const { asked, error } = await batch(netns, [write], { mask: ["/etc/nsswitch.conf"], results });
  expect(error).toBe("BatchError: a process could not be started: sluice: 8: Cannot fork");
  expect(asked).toHaveLength(1);
});

test.each([0, -1, Number.NaN])("makeClient() starts nothing when %d ms are left", async (left) => {
  const { asked, error } = await batch(netns, [write], { left });
  expect(error).toBe("BatchError: the time was over before the tools were started");
  expect(asked).toEqual([]);
});
