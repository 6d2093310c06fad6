// `npm run faults -- --kills 1000 --deaths 500 --pairs 300 --rounds 3 --repairs 500 --at-once 4`: the long run of what CI does a
// part of. Prints counts, and ends with status 1 when anything was half-way, stayed behind, or passed the proxy by.
import { parseArgs } from "node:util";
import { backends } from "../../../../src/netfilter/table.ts";
import { canMakeNetns, removeAllNetns } from "../../../lab/netns.ts";
import { dieBetweenCommits } from "./commits.ts";
import { killDels } from "./deaths.ts";
import { sufferAll } from "./hardships.ts";
import { killAdds } from "./kills.ts";
import { callPairs } from "./pairs.ts";
import { repairUnderTraffic } from "./repairs.ts";

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "1000" },
    deaths: { type: "string", default: "500" },
    pairs: { type: "string", default: "300" },
    rounds: { type: "string", default: "3" },
    repairs: { type: "string", default: "500" },
    "at-once": { type: "string", default: "4" },
  },
});
const atOnce = Number(values["at-once"]);

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

type Found = { readonly faults: readonly string[] };

/** Does one kind of thing, says how long it took and what came of it, and gives the faults. */
async function doing<T extends Found>(
  work: () => Promise<T>,
  tell: (found: T) => string,
): Promise<readonly string[]> {
  const began = performance.now();
  const found = await work();
  const seconds = ((performance.now() - began) / 1_000).toFixed(0);
  print(`${tell(found)}, in ${seconds} s: ${found.faults.length} faults`);
  for (const fault of found.faults) print(`FAULT ${fault}`);
  return found.faults;
}

function counted(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([what, count]) => `${count} ${what}`)
    .join(", ");
}

function killing(): Promise<readonly string[]> {
  return doing(
    () => killAdds({ kills: Number(values.kills), atOnce }),
    ({ kills, held, late }) =>
      `${kills} kills of ADD, then ${counted(held)} (${late} came too late)`,
  );
}

function dying(): Promise<readonly string[]> {
  return doing(
    () => killDels({ kills: Number(values.deaths), atOnce }),
    ({ kills, held, late }) =>
      `${kills} kills of DEL, then ${counted(held)} (${late} came too late)`,
  );
}

function exchanging(): Promise<readonly string[]> {
  return doing(dieBetweenCommits, ({ deaths }) => {
    return `${deaths} deaths between the commits of rulesets of several tables`;
  });
}

function pairing(): Promise<readonly string[]> {
  return doing(
    () => callPairs({ pairs: Number(values.pairs), atOnce }),
    ({ pairs, held }) => `${pairs} pairs of calls at once, then ${counted(held)}`,
  );
}

function suffering(): Promise<readonly string[]> {
  return doing(
    () => sufferAll({ rounds: Number(values.rounds), atOnce }),
    ({ trials, added }) =>
      `${trials} calls on a node that lacks something, ADD said ${counted(added)}`,
  );
}

async function repairing(): Promise<readonly string[]> {
  const faults: string[] = [];
  const repairs = Math.ceil(Number(values.repairs) / backends.length);
  for (const backend of backends) {
    const found = await doing(
      () => repairUnderTraffic({ backend, repairs }),
      ({ outbound, inbound }) => {
        const met = [outbound, inbound].map(({ answers, perSecond }) => {
          return `${JSON.stringify(answers)} at ${perSecond}/s`;
        });
        return `${repairs} repairs over ${backend}, met ${met.join(" and ")}`;
      },
    );
    faults.push(...found);
  }
  return faults;
}

if (!canMakeNetns()) throw new Error("network namespaces need root");
process.on("exit", removeAllNetns);
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));
const faults: string[] = [];
for (const work of [killing, dying, exchanging, pairing, suffering, repairing])
  faults.push(...(await work()));
const none = "no half state, nothing that a DEL does not find, no connection past the proxy";
print(faults.length === 0 ? none : `${faults.length} faults`);
process.exit(faults.length === 0 ? 0 : 1);
