// `npm run mutants`: changes the sources in small ways, one at a time, in a copy, and says which changes no test of the pure
// level notices (StrykerJS does that). To be run by hand; leaves nothing behind. Stryker does not ask the compiler, so some
// of the mutants are ones that `npm run types` would refuse.
import {
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { availableParallelism } from "node:os";
import { join, matchesGlob } from "node:path";
import { execaSync } from "execa";
import { declarationsIn, draw } from "./declarations.ts";
import { type Options, parseOptions, usage } from "./options.ts";
import { renderReport } from "./report.ts";

/** Of these, the pure level knows little (they are other levels' business), or its tests wait for servers (kube). */
const unusual = ["src/*.ts", "src/netns/**", "src/kube/**"];

function filesOf({ paths }: Options): string[] {
  const named = paths.flatMap((path) => {
    return statSync(path).isDirectory() ? globSync(join(path, "**/*.ts")) : [path];
  });
  const usual = () =>
    globSync("src/**/*.ts").filter((file) => !unusual.some((glob) => matchesGlob(file, glob)));
  return (paths.length === 0 ? usual() : named).toSorted();
}

function configOf(mutate: readonly string[], work: string): object {
  return {
    mutate,
    testRunner: "vitest",
    plugins: ["@stryker-mutator/vitest-runner"],
    vitest: { configFile: "test/mutants/vitest.config.ts", related: true },
    coverageAnalysis: "perTest",
    concurrency: availableParallelism(),
    reporters: ["json", "progress-append-only"],
    jsonReporter: { fileName: join(work, "report.json") },
    tempDirName: join(work, "copies"),
    ignorePatterns: ["dist"],
    // It is not rewritten: the compiler that is pinned has no such interface, and no test needs it.
    tsconfigFile: "none",
    disableTypeChecks: false,
    allowConsoleColors: false,
  };
}

function run(options: Options): void {
  const all = filesOf(options).flatMap((file) => declarationsIn(file, readFileSync(file, "utf8")));
  const drawn = draw(all, options);
  const { seed, lines } = options;
  const how = lines === Infinity ? "all" : `--seed ${seed} --lines ${lines}`;
  process.stdout.write(`mutants: ${how}: ${drawn.length} of ${all.length} declarations\n`);
  mkdirSync("dist", { recursive: true });
  const work = mkdtempSync("dist/mutants-");
  try {
    const config = join(work, "stryker.json");
    const places = drawn.map(({ file, from, to }) => `${file}:${from}-${to}`);
    writeFileSync(config, JSON.stringify(configOf(places, work)));
    execaSync("stryker", ["run", config], { preferLocal: true, stdio: "inherit" });
    const report: unknown = JSON.parse(readFileSync(join(work, "report.json"), "utf8"));
    process.stdout.write(`\n${renderReport(report)}mutants: ${how}\n`);
  } finally {
    rmSync(work, { recursive: true });
  }
}

try {
  run(parseOptions(process.argv.slice(2), (Date.now() % 2 ** 31) + 1));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n${usage}`);
  process.exitCode = 1;
}
