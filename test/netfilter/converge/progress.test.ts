// One family on its way to its ruleset, as ADDs show it whose tools fail while somebody else is at the table: how often it is
// tried, with which text, and when no further try will do.
import { expect, test } from "vitest";
import type { Output } from "../../../src/command/run.ts";
import { cni, conf, failed, loadState, own, succeeded } from "../../fake/call.ts";
import type { Event } from "../../fake/iptables.ts";
import { makeWorld, netnsPath, type World } from "../../fake/world.ts";
import { complete, type StateName, states } from "../../lab/states.ts";

const result = succeeded(JSON.stringify(conf.prevResult));
const times = (count: number, event: Event) => new Array<Event>(count).fill(event);
const restoreFails = (stderr: string): Event => {
  return { program: "iptables-nft-restore", fails: { status: 1, stderr } };
};
const saveFails = (stderr: string): Event => {
  return { program: "iptables-nft-save", fails: { status: 1, stderr } };
};
/** Before the table is read back, somebody brings it into this state. */
const brings = (world: World, state: StateName): Event => {
  const meanwhile = () => world.iptables.load(netnsPath, "iptables-nft", states[state]);
  return { program: "iptables-nft-save", meanwhile };
};
/** The next run of that program is as ever. */
const asEver = (verb: "restore" | "save"): Event => {
  return { program: `iptables-nft-${verb}`, meanwhile: () => undefined };
};

/** A refusal that says nothing about why: three alike, with nobody else at the table, are one for good. */
const odd = "iptables-restore: line 99 failed";
const at = (verb: string) => `/sbin/iptables-nft-${verb} (nft, ipv4, table nat)`;
const refused = (verb: string, said: string) =>
  failed(
    101,
    `${at(verb)} failed: ${said}`,
    "see the tool's message; nothing of ours is left half-way",
  );

async function add(world: World, events: readonly Event[]): Promise<Output> {
  world.iptables.events.push(...events);
  return await cni(world, "ADD");
}

/** How often IPv4's rules were loaded. */
const loads = ({ iptables }: World) =>
  iptables.written.filter(({ tool }) => tool === "iptables-nft").length;

/** How many children there were: one for each try. */
const tries = ({ asked }: World) => asked.length;

test("a refusal that stays the same is not believed when the table changed between two tries", async () => {
  const world = makeWorld();
  loadState(world, "nft", "the outbound jump missing");
  const changed = [asEver("save"), brings(world, "the inbound jump missing")];
  expect(await add(world, [...changed, ...times(6, restoreFails(odd))])).toEqual(result);
  expect(tries(world)).toBe(7);
  expect(own(world, "nft", "ipv4")).toEqual(complete);
});

test("a refusal that stays the same is not believed when rules went that had been loaded", async () => {
  const world = makeWorld();
  const flushed = [asEver("restore"), brings(world, "its rules flushed")];
  expect(await add(world, [...flushed, ...times(5, restoreFails(odd))])).toEqual(result);
  expect(tries(world)).toBe(7);
  expect(own(world, "nft", "ipv4")).toEqual(complete);
});

test("a refusal that stays the same is believed when nobody changed the table", async () => {
  const world = makeWorld();
  loadState(world, "nft", "the outbound jump missing");
  expect(await add(world, times(8, restoreFails(odd)))).toEqual(refused("restore", odd));
  expect(tries(world)).toBe(5);
});

test("rules that were loaded and could not be read back are not loaded once more", async () => {
  const world = makeWorld();
  loadState(world, "nft", "the outbound jump missing");
  expect(await add(world, [asEver("save"), saveFails("Interrupted system call")])).toEqual(result);
  expect([tries(world), loads(world)]).toEqual([3, 1]);
});

test("rules that could not be loaded are tried again at once, though the table was not read back", async () => {
  const world = makeWorld();
  loadState(world, "nft", "the outbound jump missing");
  const refusal = [asEver("restore"), restoreFails(odd)];
  const unread = [asEver("save"), saveFails("Interrupted system call")];
  expect(await add(world, [...refusal, ...unread])).toEqual(result);
  expect([tries(world), loads(world)]).toEqual([3, 1]);
});

test("a first text that met something of ours, nobody saw what, gives way to a look", async () => {
  const world = makeWorld();
  loadState(world, "nft", "the outbound jump missing");
  let restores = 0;
  const meanwhile = () => {
    restores += 1;
  };
  const counted = times(9, { program: "iptables-nft-restore", meanwhile });
  expect(await add(world, [saveFails("Interrupted system call"), ...counted])).toEqual(result);
  expect([tries(world), restores]).toEqual([3, 2]);
});

/** What tools say of a text that somebody else's change has made outdated. */
const outdated = [
  "iptables-restore: line 2 failed",
  "iptables-restore: line 3 failed: No chain/target/match by that name.",
  "line 4: CHAIN_USER_ADD failed: Chain already exists",
  "line 5: RULE_DELETE failed: Bad rule (does a matching rule exist in that chain?).",
];

test.each(outdated)("a text that is outdated is planned anew until it fits: %s", async (said) => {
  const world = makeWorld();
  expect(await add(world, times(7, restoreFails(said)))).toEqual(result);
  expect(tries(world)).toBe(8);
  const advice = "another program is changing the rules; try again";
  expect(await add(makeWorld(), times(8, restoreFails(said)))).toEqual(
    failed(11, `${at("restore")} failed in 8 tries: ${said}`, advice),
  );
});

test.each(["Bus error", "failed: Bad rule"])(
  "a table that cannot be read back is the reader's failure, whatever it says: %s",
  async (said) => {
    const world = makeWorld();
    expect(await add(world, times(8, saveFails(said)))).toEqual(refused("save", said));
    expect(tries(world)).toBe(4);
  },
);
