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
const missing: [when: string, prepare: (world: World) => unknown, problem: string][] = [
  ["nsenter is missing", (world) => world.programs.delete("nsenter"), noNsenter],
  ["the tools are missing", (world) => world.programs.delete("iptables-nft-save"), noTools],
  ["the tools refuse our rules", refusing, refusal],
];

test.each(missing)("STATUS says so when %s", async (_, prepare, problem) => {
  const world = makeWorld();
  prepare(world);
  expect(await cni(world, "STATUS")).toEqual(cannot(problem));
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
  const auto = withLinkerd({ "iptables-mode": "auto" });
  expect((await cni(world, "STATUS", auto)).exitCode).toBe(1);
  expect(world.iptables.events).toEqual([]);
});

test("STATUS takes a refusal as it was for a minute, and then tries again", async () => {
  const world = makeWorld();
  refusing(world);
  await cni(world, "STATUS");
  world.time.ms += 59_000;
  expect(await cni(world, "STATUS")).toEqual(cannot(refusal));
  world.time.ms += 1_000;
  expect(await cni(world, "STATUS")).toEqual(succeeded(""));
});

test("STATUS names all that is missing", async () => {
  const prepare = () => {
    throw new Error("EROFS: read-only file system");
  };
  const world = makeWorld({ openStore: () => ({ ...makeMemoryStore(), prepare }) });
  world.programs.delete("nsenter");
  expect(await cni(world, "STATUS")).toEqual(cannot("EROFS: read-only file system", noNsenter));
});

test("STATUS refuses a conf that ADD would refuse", async () => {
  const error = failed(7, "invalid conf: linkerd.proxy-uid: 0 is not a user id (1 to 4294967294)");
  expect(await cni(makeWorld(), "STATUS", withLinkerd({ "proxy-uid": 0 }))).toEqual(error);
});
