// `npm run fuzz -- --seconds 300 --seed 7`: the long run of what `npm test` does a part of. Says its seed first, so that a
// run that fails can be made again; ends with status 1 when a property does not hold.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: "string", default: "120" },
    seed: { type: "string", default: String(Date.now() % 2 ** 31) },
  },
});

const { seconds, seed } = values;
process.stdout.write(`fuzz: --seed ${seed} --seconds ${seconds}\n`);
const vitest = join(import.meta.dirname, "../../node_modules/.bin/vitest");
const { status } = spawnSync(vitest, ["run", "--project", "fuzz", ...positionals], {
  stdio: "inherit",
  env: { ...process.env, SLUICE_FUZZ_SEED: seed, SLUICE_FUZZ_SECONDS: seconds },
});
if (status !== 0) process.stdout.write(`fuzz: failed with --seed ${seed} --seconds ${seconds}\n`);
process.exitCode = status ?? 1;
