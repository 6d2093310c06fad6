// `npm run bench`: what the plugin costs a pod, beside the least that is possible and beside the init container.
// Needs root, nsenter, iptables, perl and strace, and what `npm run build` made. Leaves nothing behind.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bundle, executable, node } from "../lab/plugin.ts";
import { allCases } from "./cases.ts";
import { type Lab, makeLab } from "./lab.ts";
import { load, thisMachine } from "./machine.ts";
import { measure } from "./measure.ts";
import { type Options, parseOptions, usage } from "./options.ts";
import { addFresh, type Program } from "./plugin-cases.ts";
import type { Result } from "./result.ts";
import { run } from "./runner.ts";
import { summarize } from "./stats.ts";
import { countStarted, straceArgv } from "./strace.ts";
import { resultTable, targetTable } from "./table.ts";
import { type Counted, targetsOf } from "./targets.ts";

async function main(options: Options): Promise<void> {
  const lab = makeLab();
  process.once("SIGINT", () => {
    lab.remove();
    process.exit(130);
  });
  const kubeconfig = join(lab.dir, "kubeconfig");
  const api = await startApi(kubeconfig);
  try {
    const ours: Program = { way: "sluice", argv: [lab.install(executable)], isOurs: true };
    report(options, lab, { ours, kubeconfig });
  } finally {
    api.stdin?.end();
    lab.remove();
  }
}

// In a process of its own: this one is at a standstill while it measures.
async function startApi(kubeconfig: string): Promise<ChildProcess> {
  const argv = [join(import.meta.dirname, "api-server.ts"), kubeconfig];
  const child = spawn(node, argv, { stdio: ["pipe", "pipe", "inherit"] });
  await Promise.race([once(child.stdout, "data"), once(child, "exit")]);
  if (child.exitCode !== null) throw new Error("the API server for the benchmark did not start");
  return child;
}

type Given = { readonly ours: Program; readonly kubeconfig: string };

function report(options: Options, lab: Lab, { ours, kubeconfig }: Given): void {
  const programs = [
    ours,
    ...(options.quick ? [] : [bundleOf(lab)]),
    ...options.peers.map(({ name, path }) => ({ way: name, argv: [path], isOurs: false }) as const),
  ];
  const machine = thisMachine(node);
  const before = load();
  if (before > machine.cpus / 2) {
    process.stderr.write(`the machine is busy (load ${before}): times will be of little use\n`);
  }
  const cases = allCases(lab, { options, node, programs, kubeconfig });
  const measured = measure(cases, {
    runs: options.runs,
    tell: (line) => process.stderr.write(`${line}\n`),
    roundDone: lab.sweep,
  });
  const results = measured.flatMap(({ case: entry, samples }): Result[] => {
    const { action, families, backend, source, way } = entry;
    const summary = summarize(samples);
    return summary === undefined ? [] : [{ action, families, backend, source, way, summary }];
  });
  const counted = countProcesses(lab, { ours, kubeconfig });
  const targets = targetsOf(results, counted, options.crowd);
  console.log(resultTable(results));
  console.log(targetTable(targets));
  const busy = [before, load()] as const;
  console.log(`load before and after: ${busy.join(", ")}`);
  if (options.json === "") return;
  const all = { machine, load: busy, runs: options.runs, results, counted, targets };
  writeFileSync(options.json, `${JSON.stringify(all, null, 1)}\n`);
}

function bundleOf(lab: Lab): Program {
  return { way: "bundle", argv: [node, lab.install(bundle)], isOurs: true };
}

// Beside the measuring: strace makes everything slow.
function countProcesses(lab: Lab, { ours, kubeconfig }: Given): Counted {
  const where = { backend: "nft", source: "annotations", kubeconfig } as const;
  const count = (families: readonly ("ipv4" | "ipv6")[]) => {
    const file = join(lab.dir, "trace");
    const traced: Program = { ...ours, argv: [...straceArgv(file), ...ours.argv] };
    run(addFresh(lab, traced, { ...where, families }).prepare());
    return countStarted(readFileSync(file, "utf8"));
  };
  return { ipv4: count(["ipv4"]), dual: count(["ipv4", "ipv6"]) };
}

function optionsOrUsage(): Options | undefined {
  try {
    return parseOptions(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${usage}`);
    return undefined;
  }
}

const options = optionsOrUsage();
if (options === undefined) process.exitCode = 2;
else await main(options);
