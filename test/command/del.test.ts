// DEL over the fakes: takes out what ADD put in, and never fails.
import { expect, test } from "vitest";
import { Fault } from "../../src/fault.ts";
import { cni, env, loadState, own, saved, succeeded } from "../fake/call.ts";
import type { Event } from "../fake/iptables.ts";
import { makeNetns, makeWorld, netnsPath, type World } from "../fake/world.ts";
import { complete, foreignLines, stateNames } from "../lab/states.ts";

const families = ["ipv4", "ipv6"] as const;
const ours = (world: World) => families.map((family) => own(world, "nft", family));
const [all, none] = [
  [complete, complete],
  [[], []],
];

async function added(): Promise<World> {
  const world = makeWorld();
  await cni(world, "ADD");
  world.lines.length = 0;
  return world;
}

const told = {
  command: "DEL",
  containerId: "c0ffee",
  ifName: "eth0",
  pod: { namespace: "emoji", name: "web" },
};
const done = (more: object, execs: number) => ({
  ...{ level: "info", message: "done", ...told, execs, durationMs: 0 },
  ...more,
});

test("DEL takes rules and record out, once and again", async () => {
  const world = await added();
  expect(await cni(world, "DEL")).toEqual(succeeded(""));
  expect(ours(world)).toEqual(none);
  expect(world.store.records.size).toBe(0);
  expect(world.lines).toEqual([done({ changed: families }, 2)]);
  expect(world.open).toEqual(new Set());
  expect(await cni(world, "DEL")).toEqual(succeeded(""));
  expect(world.lines[1]).toEqual(done({}, 0));
});

test.each(stateNames)("DEL takes out what is ours, and nothing else, from: %s", async (name) => {
  const world = await added();
  loadState(world, "nft", name);
  const foreign = families.map((family) => foreignLines(saved(world, "nft", family)));
  expect(await cni(world, "DEL")).toEqual(succeeded(""));
  const left =
    name === "a foreign chain that jumps to ours" ? [":PROXY_INIT_REDIRECT - [0:0]"] : [];
  expect(ours(world)).toEqual([left, left]);
  expect(families.map((family) => foreignLines(saved(world, "nft", family)))).toEqual(foreign);
});

const elsewhere = (world: World) => world.netns.set(netnsPath, makeNetns(netnsPath, 2));
const itsOwn = new Fault(
  "netns-own",
  "plugin's netns and netns from CNI_NETNS should not be the same",
);
const untouched: [when: string, prepare: (world: World) => void, change: object][] = [
  ["there is no record", (world) => world.store.records.clear(), {}],
  ["no netns is named", () => undefined, { env: { CNI_NETNS: "" } }],
  ["the netns is gone", () => undefined, { env: { CNI_NETNS: "/run/netns/gone" } }],
  ["the netns is another one by now", elsewhere, {}],
  ["the netns is the node's own", (world) => world.netns.set(netnsPath, itsOwn), {}],
];

test.each(untouched)(
  "DEL touches no rule, and forgets the record, when %s",
  async (_, prepare, change) => {
    const world = await added();
    prepare(world);
    world.iptables.written.length = 0;
    expect(await cni(world, "DEL", change)).toEqual(succeeded(""));
    expect(world.iptables.written).toEqual([]);
    expect(ours(world)).toEqual(all);
    expect(world.store.records.size).toBe(0);
    expect(world.open).toEqual(new Set());
  },
);

test("DEL leaves the rules to the pod's other attachment, whose DEL takes them out", async () => {
  const world = await added();
  const other = { env: { CNI_IFNAME: "net1" } };
  await cni(world, "ADD", other);
  expect(await cni(world, "DEL")).toEqual(succeeded(""));
  expect(ours(world)).toEqual(all);
  expect([...world.store.records.keys()]).toEqual(["net,c0ffee,net1.json"]);
  expect(await cni(world, "DEL", other)).toEqual(succeeded(""));
  expect(ours(world)).toEqual(none);
});

const restoring = "/sbin/iptables-nft-restore (nft, ipv4, table nat)";
const notOut = `Fault: our rules could not be taken out by ${restoring}: oh no`;
const notSeen = "Fault: /sbin/iptables-nft-save (nft, ipv4) could not show the nat table: oh no";
const saves = ["legacy", "nft"].flatMap((backend) =>
  families.map((family) => {
    const program = family === "ipv4" ? "iptables" : "ip6tables";
    return `/sbin/${program}-${backend}-save (${backend}, ${family}, table nat)`;
  }),
);
const stuck = `BatchError: ${saves.join(" and ")} did not end within the deadline; run it by hand to see what it waits for`;
const failing = (program: Event["program"], count: number) => (world: World) => {
  const event = { program, fails: { status: 1, stderr: "# Warning\noh no" } };
  world.iptables.events.push(...new Array<Event>(count).fill(event));
};

const broken: [when: string, prepare: (world: World) => unknown, err: string][] = [
  ["the table cannot be read", failing("iptables-nft-save", 1), notSeen],
  ["the restore is refused four times", failing("iptables-nft-restore", 4), notOut],
  ["the tools do not end", (world) => world.execFaults.push({ timedOut: true }), stuck],
  [
    "nsenter is missing",
    (world) => world.programs.delete("nsenter"),
    "BatchError: nsenter is not on the node; install util-linux",
  ],
  [
    "the tools are missing",
    (world) => world.programs.delete("iptables-nft-save"),
    "Fault: no iptables programs of backend nft for ipv4 on the node",
  ],
];

test.each(broken)(
  "DEL succeeds, warns, and keeps the record for the next, when %s",
  async (_, prepare, err) => {
    const world = await added();
    prepare(world);
    expect(await cni(world, "DEL")).toEqual(succeeded(""));
    expect(world.lines).toMatchObject([
      { level: "warn", message: "rules were not taken out; the record is kept", err },
      { level: "info", message: "done", ...told },
    ]);
    expect(world.store.records.size).toBe(1);
    expect(world.open).toEqual(new Set());
  },
);

test("DEL tries again when the restore is refused once", async () => {
  const world = await added();
  failing("iptables-nft-restore", 1)(world);
  expect(await cni(world, "DEL")).toEqual(succeeded(""));
  expect(ours(world)).toEqual(none);
  expect(world.lines).toMatchObject([{ message: "done", execs: 3 }]);
});

const odd: [what: string, stdin: unknown, error: object][] = [
  ["stdin is empty", "", { code: 6 }],
  ["the conf has no name", { cniVersion: "1.0.0" }, { code: 7, message: "missing network name" }],
  ["the version is not spoken", { cniVersion: "0.2.0", name: "net" }, { code: 1 }],
];

test.each(odd)("DEL succeeds, and logs why it did nothing, when %s", async (_, stdin, error) => {
  const world = await added();
  expect(await world.call({ CNI_COMMAND: "DEL", ...env }, stdin)).toEqual(succeeded(""));
  expect(world.lines).toMatchObject([{ level: "error", ...error }]);
  expect(ours(world)).toEqual(all);
});

test("DEL cleans up also when the conf is one that ADD would refuse", async () => {
  const world = await added();
  const conf = { linkerd: { ipv6: "maybe" }, sluice: { "timeout-seconds": "soon" } };
  expect(await cni(world, "DEL", { conf })).toEqual(succeeded(""));
  expect(ours(world)).toEqual(none);
  expect(world.lines[0]).toEqual({
    level: "warn",
    message: "the conf has faults; defaults stand in their place",
    problems:
      'linkerd.ipv6: expected boolean, found "maybe"; sluice.timeout-seconds: expected number, found "soon"',
  });
});

test("DEL refuses a call that names no attachment", async () => {
  const world = makeWorld();
  const { exitCode, stdout } = await world.call({ CNI_COMMAND: "DEL" }, {});
  expect([exitCode, JSON.parse(stdout)]).toEqual([
    1,
    {
      cniVersion: "1.1.0",
      code: 4,
      msg: "required env variables [CNI_CONTAINERID,CNI_IFNAME,CNI_PATH] missing",
    },
  ]);
});
