// Starts processes and measures them exactly, by way of runner.pl: it says why not by Node itself.
import { join } from "node:path";
import { execaSync } from "execa";
import type { Sample } from "./stats.ts";

/** One process to measure. Nothing but `env` is in its environment. */
export type Job = {
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  /** Files; "" is /dev/null. */
  readonly stdin?: string;
  readonly stdout?: string;
  readonly stderr?: string;
};

/** How the processes ended, and what they took: together, from the first start to the last end, and each. */
export type Run = {
  readonly wallMs: number;
  readonly processes: readonly (Sample & { readonly exitStatus: number })[];
};

/** Runs the jobs, all at once. */
export function run(jobs: readonly Job[]): Run {
  const result = execaSync("perl", [join(import.meta.dirname, "runner.pl")], {
    input: jobs.map(line).join("\n"),
    env: { PATH: process.env["PATH"] ?? "" },
    extendEnv: false,
  });
  const [wall = "", ...lines] = result.stdout.split("\n");
  return { wallMs: Number(wall) / 1_000, processes: lines.map(parse) };
}

function line({ argv, env, stdin = "", stdout = "", stderr = "" }: Job): string {
  const files = [stdin, stdout, stderr].map((file) => file || "/dev/null");
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const fields = [...files, String(argv.length), ...argv, ...variables];
  if (fields.some((field) => /[\t\n]/.test(field))) throw new Error(`not for runner.pl: ${argv}`);
  return fields.join("\t");
}

function parse(text: string) {
  const [exitStatus = -1, wallUs = 0, cpuUs = 0, rssKib = 0] = text.split(" ").map(Number);
  return { exitStatus, wallMs: wallUs / 1_000, cpuMs: cpuUs / 1_000, rssMb: rssKib / 1_024 };
}
