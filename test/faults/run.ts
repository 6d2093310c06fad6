// `npm run faults -- --kills 1000 --repairs 500 --at-once 4`: the long run of what CI does a part of. Prints counts, and ends
// with status 1 when anything was half-way, or passed the proxy by.
import { parseArgs } from "node:util";
import { backends } from "../../src/netfilter/table.ts";
import { canMakeNetns, removeAllNetns } from "../lab/netns.ts";
import { killAdds } from "./kills.ts";
import { repairUnderTraffic } from "./repairs.ts";

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "1000" },
    repairs: { type: "string", default: "500" },
    "at-once": { type: "string", default: "4" },
  },
});

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

async function killing(): Promise<readonly string[]> {
  const began = performance.now();
  const { kills, held, late, faults } = await killAdds({
    kills: Number(values.kills),
    atOnce: Number(values["at-once"]),
  });
  const counts = Object.entries(held).map(([what, count]) => `${count} ${what}`);
  print(`${kills} kills in ${seconds(began)} s: then ${counts.join(", ")} (${late} came too late)`);
  return faults;
}

async function repairing(): Promise<readonly string[]> {
  const faults: string[] = [];
  for (const backend of backends) {
    const began = performance.now();
    const repairs = Math.ceil(Number(values.repairs) / backends.length);
    const { outbound, inbound, ...found } = await repairUnderTraffic({ backend, repairs });
    const met = [outbound, inbound].map(({ answers, perSecond }) => {
      return `${JSON.stringify(answers)} at ${perSecond}/s`;
    });
    print(`${repairs} repairs over ${backend} in ${seconds(began)} s: ${met.join(" and ")}`);
    faults.push(...found.faults);
  }
  return faults;
}

function seconds(began: number): string {
  return ((performance.now() - began) / 1_000).toFixed(0);
}

if (!canMakeNetns()) throw new Error("network namespaces need root");
process.on("exit", removeAllNetns);
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));
const faults = [...(await killing()), ...(await repairing())];
for (const fault of faults) print(`FAULT ${fault}`);
print(
  faults.length === 0 ? "no half state, no connection past the proxy" : `${faults.length} faults`,
);
process.exit(faults.length === 0 ? 0 : 1);
