// test/fake/iptables.ts against the programs that it stands for: the same texts, one after another, through the same
// client; after each the same exit status, the same words, and the same table.
import { describe, expect, onTestFinished } from "vitest";
import { type Client, makeClient } from "../../../src/netfilter/iptables/client.ts";
import { ownOf } from "../../../src/netfilter/own.ts";
import { renderRestore } from "../../../src/netfilter/restore.ts";
import { parseSave } from "../../../src/netfilter/save.ts";
import type { Backend, Family, Table } from "../../../src/netfilter/table.ts";
import { freshTransaction, removalOf, transactionTo } from "../../../src/netfilter/transaction.ts";
import { exec } from "../../../src/netns/exec.ts";
import type { Host } from "../../../src/netns/host.ts";
import { closeNetns, openNetns } from "../../../src/netns/path.ts";
import { nodeToolbox } from "../../../src/netns/toolbox.ts";
import { openPrograms } from "../../../src/node/programs.ts";
import { makeFakeIptables } from "../../fake/iptables.ts";
import { rulesetWith, withNat } from "../../lab/rulesets.ts";
import {
  inboundJump,
  loadState,
  natLines,
  outboundJump,
  rule,
  stateNames,
  states,
} from "../../lab/states.ts";
import { type Attachment, named, places, test } from "./level.ts";

const host: Host = {
  exec,
  toolbox: nodeToolbox(process.env["PATH"]),
  nssMask: () => [],
};

const ruleset = rulesetWith("ipv4", [
  {
    name: "PROXY_INIT_REDIRECT",
    hook: "PREROUTING",
    jump: inboundJump,
    rules: [rule.excludeInbound, rule.redirectInbound],
  },
  {
    name: "PROXY_INIT_OUTPUT",
    hook: "OUTPUT",
    jump: outboundJump,
    rules: [rule.proxyUid, rule.loopback, rule.excludeOutbound, rule.redirectOutbound],
  },
]);
const fresh = renderRestore(freshTransaction(ruleset)).trim().split("\n");

/** Texts by their lines, each loaded after the one before, from an empty table on. */
const transactions: readonly { does: string; texts: readonly (readonly string[])[] }[] = [
  { does: "loads our rules", texts: [fresh] },
  { does: "refuses our rules when they are there", texts: [fresh, fresh] },
  { does: "makes a chain", texts: [nat("-N MINE")] },
  { does: "refuses a chain that is there", texts: [nat("-N MINE"), nat("-N OTHER", "-N MINE")] },
  {
    does: "makes and empties chains by their declaration",
    texts: [nat(":MINE - [0:0]", "-A MINE -j RETURN"), nat(":MINE - [0:0]")],
  },
  {
    does: "refills a chain",
    texts: [nat("-N MINE", "-A MINE -j RETURN"), nat(":MINE - [0:0]", "-A MINE -j ACCEPT")],
  },
  { does: "empties a chain that is jumped to", texts: [fresh, nat(":PROXY_INIT_OUTPUT - [0:0]")] },
  {
    does: "keeps the rules of a builtin chain that is declared",
    texts: [fresh, nat(":OUTPUT ACCEPT [0:0]")],
  },
  { does: "keeps foreign rules", texts: [nat("-N FOREIGN", "-A OUTPUT -j FOREIGN"), fresh] },
  {
    does: "inserts at the head",
    texts: [fresh, nat("-I OUTPUT -j ACCEPT", "-I OUTPUT -j RETURN")],
  },
  { does: "appends at the end", texts: [fresh, nat("-A OUTPUT -j ACCEPT", "-A OUTPUT -j RETURN")] },
  { does: "doubles a rule", texts: [fresh, nat(outboundJump)] },
  { does: "takes a rule out", texts: [fresh, nat(`-D${outboundJump.slice(2)}`)] },
  {
    does: "takes the first of two equal rules out",
    texts: [
      nat("-A OUTPUT -j RETURN", "-A OUTPUT -j ACCEPT", "-A OUTPUT -j RETURN"),
      nat("-D OUTPUT -j RETURN"),
    ],
  },
  { does: "refuses to take out what is not there", texts: [fresh, nat("-D OUTPUT -j ACCEPT")] },
  {
    does: "refuses to take out a rule with another comment",
    texts: [fresh, nat(`-D${outboundJump.slice(2).replace("sluice/", "linkerd/")}`)],
  },
  { does: "refuses to take out of a chain that is not there", texts: [nat("-D MINE -j ACCEPT")] },
  {
    does: "takes nothing out when a later line is refused",
    texts: [fresh, nat(`-D${outboundJump.slice(2)}`, "-D OUTPUT -j ACCEPT")],
  },
  { does: "refuses to append to a chain that is not there", texts: [nat("-A MINE -j ACCEPT")] },
  { does: "refuses a jump to a chain that is not there", texts: [nat("-A OUTPUT -j MINE")] },
  {
    does: "loads nothing when the last line is refused",
    texts: [[...fresh.slice(0, -1), "-A OUTPUT -j MINE", "COMMIT"]],
  },
  { does: "empties a chain by -F", texts: [fresh, nat("-F PROXY_INIT_OUTPUT")] },
  { does: "refuses to empty what is not there", texts: [nat("-F MINE")] },
  { does: "deletes a chain", texts: [nat("-N MINE"), nat("-X MINE")] },
  {
    does: "deletes a chain that it just emptied and freed",
    texts: [
      fresh,
      nat(`-D${outboundJump.slice(2)}`, "-F PROXY_INIT_OUTPUT", "-X PROXY_INIT_OUTPUT"),
    ],
  },
  {
    does: "refuses to delete a chain that is jumped to",
    texts: [fresh, nat("-F PROXY_INIT_OUTPUT", "-X PROXY_INIT_OUTPUT")],
  },
  {
    does: "refuses to delete a chain with rules",
    texts: [nat("-N MINE", "-A MINE -j ACCEPT"), nat("-X MINE")],
  },
  { does: "refuses to delete what is not there", texts: [nat("-X MINE")] },
  { does: "loads nothing without COMMIT", texts: [fresh.slice(0, -1)] },
  { does: "keeps what came before a COMMIT", texts: [[...nat("-N MINE"), ...nat("-N MINE")]] },
  {
    does: "reads over comments, blank lines and counters",
    texts: [nat("# a comment", "", "[7:420] -A OUTPUT -j ACCEPT")],
  },
  { does: "does nothing with an empty transaction", texts: [nat(), fresh, nat()] },
];

describe.for(places)("over $backend, $family", (place) => {
  test.for(named(transactions, ({ does }) => does))(
    "the fake does as the programs do when a text %s",
    async ([, { texts }], { attachment }) => {
      const { real, fake } = await openBench(attachment, place);

      for (const lines of texts) {
        const text = lines.map((line) => `${line}\n`).join("");
        expect(await fake.load(text)).toStrictEqual(await real.load(text));
      }
    },
  );

  test.for(stateNames)(
    "the fake does as the programs do when %s is repaired, and taken out",
    async (state, { attachment }) => {
      const { real, fake } = await openBench(attachment, place);
      loadState({ ...place, netns: attachment.netns }, state);
      fake.put(states[state]);
      const found = await real.load("");
      expect(await fake.load("")).toStrictEqual(found);

      const repair = renderRestore(
        transactionTo({ ...ruleset, ...place }, withNat(tableOf(found))),
      );
      const repaired = await real.load(repair);
      expect(await fake.load(repair)).toStrictEqual(repaired);

      const removal = renderRestore(removalOf(ownOf([ruleset]), withNat(tableOf(repaired))));
      expect(await fake.load(removal)).toStrictEqual(await real.load(removal));
    },
  );
});

/** What came of a text: the restore's end and words, and the nat table afterwards. */
type Loaded = { readonly status: number; readonly stderr: string; readonly nat: readonly string[] };
type Bench = { readonly load: (text: string) => Promise<Loaded> };
type Place = { readonly backend: Backend; readonly family: Family };

async function openBench({ netns }: Attachment, { backend, family }: Place) {
  const tools = await openPrograms(host).find(backend, family);
  if (tools === undefined) throw new Error(`no programs of ${backend} for ${family}`);
  const fake = makeFakeIptables();
  const opened = openNetns({ path: netns.path, allowOwn: false });
  onTestFinished(() => closeNetns(opened));
  const benchOf = (client: Client): Bench => ({
    load: async (restore) => {
      const [outcome] = await client(opened, [{ family, backend, tools, restore }], 10_000);
      if (outcome === undefined) throw new Error("no outcome");
      const { restoreStatus: status, stderr, saved } = outcome;
      return { status, stderr, nat: natLines(saved).map(withoutCounters) };
    },
  });
  const name = `${family === "ipv4" ? "iptables" : "ip6tables"}-${backend}` as const;
  return {
    real: benchOf(makeClient(host)),
    fake: {
      ...benchOf(makeClient({ ...host, exec: fake.exec })),
      put: (text: string) => fake.load(opened.handle, name, text),
    },
  };
}

function tableOf({ nat: lines }: Loaded): Table {
  return parseSave(["*nat", ...lines, "COMMIT", ""].join("\n"));
}

function withoutCounters(line: string): string {
  return line.replace(/\[\d+:\d+\]$/, "[0:0]");
}

function nat(...lines: readonly string[]): string[] {
  return ["*nat", ...lines, "COMMIT"];
}
