// Rulesets of several tables against the real kernel: written, damaged, repaired, exchanged for one another, and removed.
import { describe, expect } from "vitest";
import { compare, renderDrift } from "../../../src/netfilter/compare.ts";
import { converge } from "../../../src/netfilter/converge/converge.ts";
import { jobFor } from "../../../src/netfilter/converge/job.ts";
import { readTables, shownIn } from "../../../src/netfilter/converge/readout.ts";
import { removeOwn } from "../../../src/netfilter/converge/remove.ts";
import { ownOf, replacing } from "../../../src/netfilter/own.ts";
import { chainOf } from "../../../src/netfilter/rule.ts";
import { backends, families, type Ruleset, type TableName } from "../../../src/netfilter/table.ts";
import { transactionTo } from "../../../src/netfilter/transaction.ts";
import { type Exec, exec } from "../../../src/netns/exec.ts";
import { closeNetns, openNetns } from "../../../src/netns/path.ts";
import { openSession } from "../../lab/session.ts";
import { bareZones, mangleCapture, natCapture, sharedChain } from "../../lab/several-tables.ts";
import { type Place, restore } from "../../lab/states.ts";
import { type Attachment, test } from "./level.ts";

/** A netns worked in through one backend, with the children that were started counted. */
async function open({ netns }: Attachment, { backend, family }: Omit<Place, "netns">) {
  let children = 0;
  const counting: Exec = (request) => {
    children += 1;
    return exec(request);
  };
  const opened = openNetns({ path: netns.path, allowOwn: false });
  const session = await openSession(counting, opened, { backend, family });
  const place: Place = { netns, backend, family };
  return {
    session,
    place,
    children: () => children,
    close: () => closeNetns(opened),
    /** What differs from the ruleset, in words. */
    drifts: async (ruleset: Ruleset) => {
      const outcomes = await session.client(opened, [jobFor(session.choice, ruleset)], 20_000);
      const shown = outcomes.map((outcome) => shownIn(readTables(outcome), ruleset.tables));
      return shown.flatMap((one) => {
        return one instanceof Error ? [one.message] : compare(ruleset, one.tables).map(renderDrift);
      });
    },
  };
}

/** All rules of a netns, and the chains that these rulesets name, each behind its table's name. */
function rulesIn({ netns, backend, family }: Place): string[] {
  const program = `${family === "ipv4" ? "iptables" : "ip6tables"}-${backend}-save`;
  let table = "";
  return netns
    .run(program, [])
    .split("\n")
    .flatMap((line) => {
      if (line.startsWith("*")) table = line.slice(1);
      return /^(-A |:MADE|:THEIRS)/.test(line) ? [`${table} ${line}`] : [];
    });
}

const load = (place: Place, table: TableName, ...lines: readonly string[]) =>
  restore(place, [`*${table}`, ...lines, "COMMIT", ""].join("\n"), "--noflush");

/** The damages that one rule or chain of ours can take, each as lines for its table. */
function damagesTo({ tables }: Ruleset): { table: TableName; lines: string[] }[] {
  return tables.flatMap(({ name: table, chains, placed }) => {
    const standing = [...chains.flatMap(({ rules }) => rules), ...placed.map(({ rule }) => rule)];
    const without = standing.map((rule) => [rule.replace(/^-A/, "-D")]);
    const doubled = standing.map((rule) => [rule]);
    const moved = standing.map((rule) => [rule.replace(/^-A/, "-D"), rule]);
    const flushed = chains.map(({ name }) => [`-F ${name}`]);
    const shadowed = placed.map(({ rule }) => [`-I ${chainOf(rule)} -j ACCEPT`]);
    return [...without, ...doubled, ...moved, ...flushed, ...shadowed].map((lines) => {
      return { table, lines };
    });
  });
}

const kinds = { mangleCapture, natCapture, bareZones, sharedChain };
const places = backends.flatMap((backend) => families.map((family) => ({ backend, family })));
const rows = Object.entries(kinds).flatMap(([name, make]) =>
  places.map((place) => ({ ...place, name, ruleset: make(place.family) })),
);

describe.for(rows)("$name through $backend, $family", ({ backend, family, name, ruleset }) => {
  test("is written with one child, and found right", async ({ attachment }) => {
    const { session, drifts, children, close } = await open(attachment, { backend, family });
    const { written, created } = await converge(session, [ruleset]);
    // Nothing refuses where there is no chain of ours: then it is looked first.
    expect([written, created, children()]).toEqual([
      [family],
      [family],
      name === "bareZones" ? 2 : 1,
    ]);
    expect(await drifts(ruleset)).toEqual([]);
    expect((await converge(session, [ruleset])).written).toEqual([]);
    close();
  });

  test("is seen to be damaged, and repaired from any damage", { timeout: 120_000 }, async ({
    attachment,
  }) => {
    const { session, place, drifts, close } = await open(attachment, { backend, family });
    await converge(session, [ruleset]);
    const right = rulesIn(place);
    for (const { table, lines } of damagesTo(ruleset)) {
      load(place, table, ...lines);
      const damaged = rulesIn(place);
      const found = await drifts(ruleset);
      // What was the last of its chain stands where it stood.
      expect([lines, found.length > 0]).toEqual([lines, damaged.join() !== right.join()]);
      await converge(session, [ruleset]);
      expect([lines, await drifts(ruleset)]).toEqual([lines, []]);
      if (lines[0]?.endsWith("-j ACCEPT") === true) {
        load(place, table, ...lines.map((line) => line.replace(/^-I/, "-D")));
      }
      expect([lines, rulesIn(place).toSorted()]).toEqual([lines, right.toSorted()]);
    }
    close();
  });

  test("is removed by its names, and nothing else is", async ({ attachment }) => {
    const { session, place, close } = await open(attachment, { backend, family });
    for (const { name: table } of ruleset.tables) {
      load(place, table, "-N THEIRS", "-A THEIRS -p tcp -j ACCEPT", "-A OUTPUT -p udp -j THEIRS");
    }
    const before = rulesIn(place);
    await converge(session, [ruleset]);
    const { left, husks, written } = await removeOwn(session, [family], ownOf([ruleset]));
    expect([left, husks, written]).toEqual([[], [], [family]]);
    expect(rulesIn(place)).toEqual(before);
    close();
  });
});

describe.for(places)("through $backend, $family", ({ backend, family }) => {
  const [mangle, nat] = [mangleCapture(family), natCapture(family)];

  test.for([
    { from: "mangle", to: "nat", one: mangle, other: nat },
    { from: "nat", to: "mangle", one: nat, other: mangle },
  ])("capture moves from $from to $to, and leaves nothing", async (row, { attachment }) => {
    const { one, other } = row;
    const { session, place, drifts, close } = await open(attachment, { backend, family });
    await converge(session, [other]);
    const right = rulesIn(place);
    await removeOwn(session, [family], ownOf([other]));
    await converge(session, [one]);
    await converge(session, [replacing(other, [one])]);
    expect(await drifts(replacing(other, [one]))).toEqual([]);
    expect(rulesIn(place).toSorted()).toEqual(right.toSorted());
    close();
  });

  test("a commit that was refused behind another leaves the first one's rules to be taken back", async ({
    attachment,
  }) => {
    const { session, place, close } = await open(attachment, { backend, family });
    // Somebody else's chain of that name, held by a jump that is not ours to spell: raw is written, nat is not.
    load(place, "nat", "-N MADE_OUT", "-A OUTPUT -m string --string x --algo bm -j MADE_OUT");
    const before = rulesIn(place);
    await expect(converge(session, [nat])).rejects.toThrow(/somebody|someone|leads into our chain/);
    const own = ownOf([nat]);
    const raw = rulesIn(place).filter(
      (line) => line.includes("MADE_ZONE") || line.includes("CT --zone"),
    );
    expect(raw).toEqual([]);
    expect(rulesIn(place).filter((line) => before.includes(line))).toEqual(before);
    expect(own.map(({ name }) => name)).toEqual(["raw", "nat"]);
    close();
  });

  test("an addition comes before what is taken away", () => {
    const empty = { chains: new Map<string, string[]>() };
    const tables = { raw: empty, mangle: tableOf(mangle), nat: empty };
    const order = transactionTo(replacing(nat, [mangle]), tables).map(({ table }) => table);
    expect(order).toEqual(["raw", "nat", "mangle"]);
  });
});

/** The table that holds what a ruleset of one table wants, and nothing else. */
function tableOf({ tables }: Ruleset) {
  const [own] = tables;
  const chains = own?.chains.map(({ name, rules }) => [name, rules] as const) ?? [];
  const hooks = [...new Set(own?.placed.map(({ hook }) => hook))].map((hook) => {
    const rules = own?.placed.filter((one) => one.hook === hook).map(({ rule }) => rule);
    return [hook, rules ?? []] as const;
  });
  return { chains: new Map([...chains, ...hooks]) };
}
