// Everything of ours out of a netns, by no CNI call: where it is found, what cannot be seen, and what is told.
import { expect, test } from "vitest";
import { ownOf } from "../../src/netfilter/own.ts";
import type { Backend } from "../../src/netfilter/table.ts";
import { findOwn, removeAll, removeSpots, type Written } from "../../src/upkeep/removal.ts";
import type { Entered } from "../../src/upkeep/task.ts";
import { loadState, own, toolOf } from "../fake/call.ts";
import type { Event } from "../fake/iptables.ts";
import { settingsWith, subject, taskIn } from "../fake/task.ts";
import { cniError, rejectionOf } from "../fake/thrown.ts";
import { makeNetns, makeWorld, netnsPath, type World } from "../fake/world.ts";

const families = ["ipv4", "ipv6"] as const;
const { settings, plan } = settingsWith({ ipv6: true });
const written = (backend: Backend, ...some: Written["families"]): Written => {
  return { backend, families: some, own: ownOf(plan.intent.rulesets) };
};

function enter(world: World): Entered {
  const netns = makeNetns(netnsPath, 1);
  world.netns.set(netnsPath, netns);
  return { ...subject, netns };
}

const places = async (world: World, where: Written) => {
  const spots = await findOwn(taskIn(world, settings), enter(world).netns, where);
  return spots.map(({ backend, family, shown }) => [backend, family, shown !== undefined]);
};

test("findOwn() finds what is ours in every backend and family, whatever is recorded", async () => {
  const world = makeWorld();
  expect(await places(world, written("nft", "ipv4"))).toEqual([]);
  loadState(world, "nft", "all in order");
  world.iptables.load(
    netnsPath,
    toolOf("legacy", "ipv6"),
    "*nat\n:PROXY_INIT_OUTPUT - [0:0]\nCOMMIT\n",
  );
  expect(await places(world, written("nft", "ipv4"))).toEqual([
    ["nft", "ipv4", true],
    ["nft", "ipv6", true],
    ["legacy", "ipv6", true],
  ]);
});

const saveFails = (backend: Backend, stderr: string): Event => {
  return { program: `${toolOf(backend, "ipv4")}-save`, fails: { status: 1, stderr } };
};
const missing =
  "can't initialize iptables table `nat': Table does not exist (do you need to insmod?)";

test("findOwn() takes a backend that the kernel does not have for one without rules of ours", async () => {
  const world = makeWorld();
  loadState(world, "nft", "all in order");
  world.iptables.load(netnsPath, toolOf("legacy", "ipv4"), "*nat\nCOMMIT\n");
  world.iptables.events.push(saveFails("legacy", missing));
  expect(await places(world, written("nft", ...families))).toEqual([
    ["nft", "ipv4", true],
    ["nft", "ipv6", true],
  ]);
});

const unseen = (backend: Backend, said: string) =>
  cniError(
    11,
    `/sbin/iptables-${backend}-save (${backend}, ipv4) could not show the nat table: ${said}`,
    "whether rules of ours are in it is not known",
  );

test.each<[string, Backend, string]>([
  ["where they were written it must be seen", "nft", missing],
  ["a failure that says nothing is no answer elsewhere either", "legacy", "oh no"],
])("findOwn() does not take silence for an empty table: %s", async (_, backend, said) => {
  const world = makeWorld();
  world.iptables.load(netnsPath, toolOf("legacy", "ipv4"), "*nat\nCOMMIT\n");
  world.iptables.events.push(saveFails(backend, said));
  const found = findOwn(taskIn(world, settings), enter(world).netns, written("nft", ...families));
  expect(await rejectionOf(found)).toEqual(unseen(backend, said));
});

test("findOwn() needs the programs that wrote here", async () => {
  const world = makeWorld();
  world.programs.delete("ip6tables-nft-save");
  const found = findOwn(taskIn(world, settings), enter(world).netns, written("nft", ...families));
  expect(await rejectionOf(found)).toMatchObject({
    code: 101,
    message: "no iptables programs of backend nft for ipv6 on the node",
  });
});

const incompatible = "# Table `nat' is incompatible, use 'nft' tool.\n";
const hides = (): Event => {
  return { program: "iptables-nft-save", fails: { status: 0, stdout: incompatible } };
};

test.each([
  ["holds none", "nothing in it", []],
  ["holds some", "all in order", [["nft", "ipv4", true]]],
] as const)(
  "findOwn() asks the kernel where a table is not shown, which %s",
  async (_, state, found) => {
    const world = makeWorld();
    if (state !== "nothing in it") {
      world.iptables.load(
        netnsPath,
        toolOf("nft", "ipv4"),
        "*nat\n:PROXY_INIT_OUTPUT - [0:0]\nCOMMIT\n",
      );
    }
    world.iptables.events.push(hides());
    expect(await places(world, written("nft", "ipv4"))).toEqual(found);
  },
);

test("removeAll() says which families it wrote to, in their order", async () => {
  const world = makeWorld();
  loadState(world, "legacy", "all in order");
  const here = enter(world);
  const task = taskIn(world, settings);
  expect(await removeAll(task, here, written("nft", "ipv4"))).toEqual(families);
  expect(families.map((family) => own(world, "legacy", family))).toEqual([[], []]);
  expect(await removeAll(task, here, written("nft", "ipv4"))).toEqual([]);
});

test("removeSpots() tells of chains that somebody else holds", async () => {
  const world = makeWorld();
  loadState(world, "nft", "a foreign chain that jumps to ours");
  const spots = [{ backend: "nft", family: "ipv4" } as const];
  const removing = { own: ownOf(plan.intent.rulesets), spots };
  const task = taskIn(world, settings);
  expect(await removeSpots(task, enter(world), removing)).toEqual(["ipv4"]);
  expect(world.lines).toMatchObject([
    {
      level: "warn",
      backend: "nft",
      message: "empty chains of ours stay, for rules of someone else's lead into them",
    },
  ]);
});

test("removeSpots() fails where the kernel does not let go, and says what is left", async () => {
  const world = makeWorld();
  world.iptables.load(
    netnsPath,
    toolOf("nft", "ipv4"),
    [
      "*nat",
      ":MINE - [0:0]",
      ":PROXY_INIT_OUTPUT - [0:0]",
      "-A MINE -j PROXY_INIT_OUTPUT",
      "COMMIT",
      "",
    ].join("\n"),
  );
  const shown = {
    program: "iptables-nft-save",
    fails: { status: 0, stdout: incompatible },
  } as const;
  world.iptables.events.push(...new Array<Event>(40).fill(shown));
  const spots = [{ backend: "nft", family: "ipv4" } as const];
  const removing = { own: ownOf(plan.intent.rulesets), spots };
  expect(await rejectionOf(removeSpots(taskIn(world, settings), enter(world), removing))).toEqual(
    cniError(
      11,
      "rules of ours could not be taken out of the nat table (nft) of pod emoji/web",
      "PROXY_INIT_OUTPUT is left, empty, and the ipv4 nat table cannot be verified: Table `nat' is incompatible, use 'nft' tool.",
    ),
  );
});
