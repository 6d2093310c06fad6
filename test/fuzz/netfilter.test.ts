// From any table to the one that is meant, and back to one without us: the planned transactions are carried out on a table
// in memory (proven against the real tools in test/level/netns/fake.test.ts), and the end is compared.
import fc from "fast-check";
import { expect, test } from "vitest";
import { ownChains } from "../../src/mesh/linkerd/names.ts";
import { buildRuleset } from "../../src/mesh/linkerd/ruleset.ts";
import { compare } from "../../src/netfilter/compare.ts";
import { ownOf } from "../../src/netfilter/own.ts";
import { holdersOf, oddJumps } from "../../src/netfilter/plan.ts";
import { renderRestore } from "../../src/netfilter/restore.ts";
import { parseSave } from "../../src/netfilter/save.ts";
import { backends, type Ruleset } from "../../src/netfilter/table.ts";
import { removalOf, transactionTo } from "../../src/netfilter/transaction.ts";
import { emptyNat, type Nat, printNat, restoreNat } from "../fake/nat.ts";
import { namesIn, withNat } from "../lab/rulesets.ts";
import { intent } from "./arbitrary/intent.ts";
import { anyTable, type Chains } from "./arbitrary/table.ts";
import { holds, timeoutMs } from "./budget.ts";
import { ownRestoreLine } from "./own-words.ts";

const part = 0.03;

const given = fc
  .tuple(intent, fc.constantFrom("ipv4" as const, "ipv6" as const), fc.constantFrom(...backends))
  .chain(([one, family, backend]) => {
    const ruleset = buildRuleset(one, family);
    return anyTable(ruleset).map((chains) => ({ ruleset, chains, backend }));
  });

type Given = {
  readonly ruleset: Ruleset;
  readonly chains: Chains;
  readonly backend: (typeof backends)[number];
};

test("a plan leads from any table to the one that is meant", { timeout: timeoutMs }, async () => {
  const property = fc.property(given, ({ ruleset, chains, backend }: Given) => {
    const tool = { family: ruleset.family, backend };
    const before = natOf(chains);
    const table = parseSave(printNat(before, tool));
    // What cannot be trusted is not written to.
    if (table.unverifiable !== undefined) return;
    const text = renderRestore(transactionTo(ruleset, withNat(table)));
    const { nat, status, stderr } = restoreNat(before, text, tool);
    const after = parseSave(printNat(nat, tool));
    expect([status, stderr]).toEqual([0, ""]);
    // Jumps of odd words stay, and are told.
    const odd = namesIn(ruleset).chains.flatMap((name) => oddJumps(name, after, namesIn(ruleset)));
    const drifts = compare(ruleset, withNat(after));
    expect(drifts.filter(({ found }) => !odd.includes(found))).toEqual([]);
    expect(transactionTo(ruleset, withNat(after))).toEqual([]);
    expect(foreignIn(nat)).toEqual(foreignIn(before));
  });
  await holds(property, { part });
});

test("a removal leaves nothing of ours, and all that is others'", {
  timeout: timeoutMs,
}, async () => {
  const property = fc.property(given, ({ ruleset, chains, backend }: Given) => {
    const tool = { family: ruleset.family, backend };
    const before = natOf(chains);
    const table = parseSave(printNat(before, tool));
    if (table.unverifiable !== undefined) return;
    const names = namesIn(ruleset);
    const planned = removalOf([names], withNat(table));
    const { nat, status, stderr } = restoreNat(before, renderRestore(planned), tool);
    expect([status, stderr]).toEqual([0, ""]);
    // A chain that others lead into stays, and lets all pass.
    const held = names.chains.filter((chain) => holdersOf(chain, table, names).length > 0);
    const odd = names.chains.flatMap((chain) => oddJumps(chain, table, names));
    expect(ownIn(nat).filter((own) => ![...held, ...odd].includes(own))).toEqual([]);
    expect(foreignIn(nat)).toEqual(foreignIn(before));
  });
  await holds(property, { part });
});

test("no foreign word gets into a transaction", { timeout: timeoutMs }, async () => {
  const property = fc.property(given, ({ ruleset, chains, backend }: Given) => {
    const table = parseSave(printNat(natOf(chains), { family: ruleset.family, backend }));
    const tables = withNat(table);
    const removal = removalOf(ownOf([ruleset]), tables);
    const texts = [transactionTo(ruleset, tables), removal].map(renderRestore);
    const lines = texts.flatMap((text) => text.split("\n"));
    expect(lines.filter((line) => !ownRestoreLine.test(line))).toEqual([]);
  });
  await holds(property, { part });
});

function natOf(chains: Chains): Nat {
  const there = [...chains].map(([name, rules]) => {
    return [name, { policy: emptyNat.has(name) ? "ACCEPT" : "-", rules }] as const;
  });
  return new Map([...emptyNat, ...there]);
}

const intoOwn = / -[jg] PROXY_INIT_(?:REDIRECT|OUTPUT)$/;

/** All that is others', in its order: their chains, and the rules of builtin chains that do not lead to us. */
function foreignIn(nat: Nat): [string, readonly string[]][] {
  return [...nat]
    .filter(([name]) => !ownChains.includes(name))
    .map(([name, { rules }]) => [
      name,
      emptyNat.has(name) ? rules.filter((rule) => !intoOwn.test(rule)) : rules,
    ]);
}

/** What is ours: chains by their names, their rules, and the jumps into them. */
function ownIn(nat: Nat): string[] {
  const builtin = [...nat].filter(([name]) => emptyNat.has(name));
  return [
    ...ownChains.filter((chain) => nat.has(chain)),
    ...ownChains.flatMap((chain) => nat.get(chain)?.rules ?? []),
    ...builtin.flatMap(([, { rules }]) => rules.filter((rule) => intoOwn.test(rule))),
  ];
}
