// STATUS over the fakes: could ADD work here?
import { expect, test } from "vitest";
import { cni, failed, succeeded, withLinkerd } from "../fake/call.ts";
import { makeMemoryStore } from "../fake/store.ts";
import { makeWorld, type World } from "../fake/world.ts";

const cannot = (problem: string, ...more: string[]) =>
  failed(50, `sluice cannot work on this node: ${problem}`, more.join("; "));

test("STATUS tries the backend once, and then starts nothing", async () => {
  const world = makeWorld();
  expect(await cni(world, "STATUS")).toEqual(succeeded(""));
  expect(world.asked.length).toBe(1);
  expect(world.lines).toMatchObject([{ message: "done", command: "STATUS", backend: "nft" }]);
  expect(await cni(world, "STATUS")).toEqual(succeeded(""));
  expect(world.asked.length).toBe(1);
  expect(world.lines[1]).toMatchObject({ message: "done", backend: "nft", execs: 0 });
});

test("STATUS starts nothing when an ADD has shown that it works", async () => {
  const world = makeWorld();
  await cni(world, "ADD");
  world.asked.length = 0;
  expect(await cni(world, "STATUS")).toEqual(succeeded(""));
  expect(world.asked).toEqual([]);
});

test("STATUS leaves nothing behind", async () => {
  const world = makeWorld();
  await cni(world, "STATUS", withLinkerd({ "iptables-mode": "auto" }));
  expect(new Set(world.iptables.written.map(({ place }) => place))).toEqual(new Set(["scratch"]));
  expect(world.store.records.size).toBe(0);
});

const install = "install iptables 1.8 or later, or set linkerd.iptables-mode to what is there";
const noTools = `no iptables programs of backend nft for ipv4 on the node (${install})`;
const noNsenter = "nsenter is not on the node; install util-linux";
const refusal =
  "/sbin/iptables-nft-restore (nft, ipv4, table nat) failed: Permission denied (root with CAP_NET_ADMIN is needed; with SELinux, look for a denial)";
const permission = { status: 1, stderr: "Permission denied" };
const refusing = (world: World) => {
  world.iptables.events.push({ program: "iptables-nft-restore", fails: permission });
};
const onlyIpv4 = withLinkerd({ ipv6: false });
const missing: [when: string, prepare: (world: World) => unknown, problem: string][] = [
  ["nsenter is missing", (world) => world.programs.delete("nsenter"), noNsenter],
  ["the tools are missing", (world) => world.programs.delete("iptables-nft-save"), noTools],
  ["the tools refuse our rules", refusing, refusal],
];

test.each(missing)("STATUS says so when %s", async (_, prepare, problem) => {
  const world = makeWorld();
  prepare(world);
  expect(await cni(world, "STATUS", onlyIpv4)).toEqual(cannot(problem));
});

test("STATUS asks anew at once when a process could not be started", async () => {
  const world = makeWorld();
  world.execFaults.push({ exitCode: undefined, startError: "spawnSync /sbin/timeout EAGAIN" });
  const short =
    "processes, memory or descriptors are short: see pids.max and memory.max of the runtime's cgroup, and the node's limits; try again";
  expect(await cni(world, "STATUS", onlyIpv4)).toEqual(
    cannot(`a process could not be started: spawnSync /sbin/timeout EAGAIN (${short})`),
  );
  expect(await cni(world, "STATUS", onlyIpv4)).toEqual(succeeded(""));
});

test("STATUS finds the other backend where the hinted one refuses, as ADD does", async () => {
  const world = makeWorld();
  world.iptables.mangle.set("host iptables-nft", ["KUBE-IPTABLES-HINT"]);
  for (let i = 0; i < 2; i++) {
    world.iptables.events.push({ program: "iptables-nft-restore", fails: permission });
  }
  const auto = withLinkerd({ "iptables-mode": "auto" });
  expect(await cni(world, "STATUS", auto)).toEqual(succeeded(""));
  expect(world.lines.at(-1)).toMatchObject({ message: "done", backend: "legacy" });
});

test("STATUS keeps to the hinted backend where its table cannot be shown, as ADD does", async () => {
  const world = makeWorld();
  world.iptables.mangle.set("host iptables-nft", ["KUBE-IPTABLES-HINT"]);
  const stdout = "# Table `nat' is incompatible, use 'nft' tool.\n";
  const program = "iptables-nft-save";
  // The look for the hint is as ever; the one at what was written is not.
  world.iptables.events.push({ program, meanwhile: () => undefined });
  world.iptables.events.push({ program, fails: { stdout } });
  const auto = withLinkerd({ "iptables-mode": "auto", ipv6: false });
  expect((await cni(world, "STATUS", auto)).exitCode).toBe(1);
  expect(world.iptables.events).toEqual([]);
});

test("STATUS takes a refusal as it was for a minute, and then tries again", async () => {
  const world = makeWorld();
  refusing(world);
  await cni(world, "STATUS", onlyIpv4);
  world.time.ms += 59_000;
  expect(await cni(world, "STATUS", onlyIpv4)).toEqual(cannot(refusal));
  world.time.ms += 1_000;
  expect(await cni(world, "STATUS", onlyIpv4)).toEqual(succeeded(""));
});

/** Faults that keep only some pods from being served, and what is said of them. */
const someOnly: [when: string, prepare: (world: World) => unknown, said: string][] = [
  ["IPv4's tools refuse", refusing, `pods that have ipv4 cannot be served: ${refusal}`],
  [
    "IPv6's tools refuse",
    (world) => world.iptables.events.push({ program: "ip6tables-nft-restore", fails: permission }),
    `pods that have ipv6 cannot be served: ${refusal.replace("iptables", "ip6tables").replace("ipv4", "ipv6")}`,
  ],
  [
    "there are no tools for IPv6",
    (world) => world.programs.delete("ip6tables-nft-save"),
    `pods that have ipv6 cannot be served: ${noTools.replace("ipv4", "ipv6")}`,
  ],
];

test.each(someOnly)("STATUS only warns when %s", async (_, prepare, said) => {
  const world = makeWorld();
  prepare(world);
  expect(await cni(world, "STATUS")).toEqual(succeeded(""));
  expect(world.lines).toMatchObject([
    { level: "warn", message: said },
    { level: "info", message: "done", backend: "nft" },
  ]);
});

test("STATUS does not take a proof of one family for one of the other", async () => {
  const world = makeWorld();
  world.programs.delete("ip6tables-nft-save");
  const ipv4Pod = {
    conf: { prevResult: { cniVersion: "1.1.0", ips: [{ address: "10.1.2.3/24" }] } },
  };
  await cni(world, "ADD", ipv4Pod);
  world.lines.length = 0;
  expect(await cni(world, "STATUS")).toEqual(succeeded(""));
  expect(world.lines[0]).toMatchObject({ level: "warn", message: expect.stringMatching("ipv6") });
});

test("STATUS says at debug what the last one said, and a change aloud", async () => {
  const world = makeWorld();
  const levels = async () => {
    world.lines.length = 0;
    await cni(world, "STATUS", onlyIpv4);
    return world.lines.map((line) => "level" in line && line.level);
  };
  const found = [await levels(), await levels()];
  const wait = () => {
    world.programs.delete("iptables-nft-save");
    return levels();
  };
  found.push(await wait(), await levels());
  world.time.ms += 61_000;
  found.push(await levels());
  world.programs.add("iptables-nft-save");
  world.time.ms += 61_000;
  found.push(await levels(), await levels());
  expect(found).toEqual([
    ["info"],
    ["debug"],
    ["error"],
    ["debug"],
    ["debug"],
    ["debug"],
    ["debug"],
  ]);
});

test("STATUS names all that is missing", async () => {
  const prepare = () => {
    throw new Error("EROFS: read-only file system");
  };
  const world = makeWorld({ openStore: () => ({ ...makeMemoryStore(), prepare }) });
  world.programs.delete("nsenter");
  expect(await cni(world, "STATUS")).toEqual(cannot("EROFS: read-only file system", noNsenter));
});

const badValue =
  "pods that have a proxy cannot be served: linkerd.proxy-uid: 0 is not a user id (1 to 4294967294)";

test("STATUS only warns of a value that ADD would refuse: it need not concern every pod", async () => {
  const world = makeWorld();
  expect(await cni(world, "STATUS", withLinkerd({ "proxy-uid": 0 }))).toEqual(succeeded(""));
  expect(world.lines).toMatchObject([
    { level: "warn", message: badValue },
    { level: "info", message: "done" },
  ]);
});

test("STATUS only warns of a kubeconfig that cannot be used: not every pod needs it", async () => {
  const openKube = () => Promise.reject(new Error("kubeconfig /k: no such file"));
  const world = makeWorld({ openKube });
  const change = { conf: { kubernetes: { kubeconfig: "/k" } } };
  for (const level of ["warn", "debug"]) {
    world.lines.length = 0;
    expect(await cni(world, "STATUS", change)).toEqual(succeeded(""));
    expect(world.lines[0]).toMatchObject({ level, message: "kubeconfig /k: no such file" });
  }
});
