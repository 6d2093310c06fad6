// Brings a Debian machine to working order: node build/setup.mjs [--only demo|old-cluster]. Quick when nothing is missing.
// It runs before there are any packages, on whatever Node the machine has (18 or later).
import { aptStep, hostPackages, runtimePackages } from "./setup/apt.mjs";
import { goPrograms, goStep, kubernetesStep } from "./setup/go.mjs";
import { npmStep } from "./setup/npm.mjs";
import {
  bin,
  cniPluginsDir,
  containerdDir,
  kubernetesDir,
  oldKubernetesDir,
  versions,
} from "./setup/paths.mjs";
import { CommandFailure } from "./setup/run.mjs";

/**
 * @typedef {object} Step
 * @property {string} name
 * @property {() => string[]} missing what is not there; looks at this machine only
 * @property {(missing: string[]) => void} install
 * @property {string} advice what to do by hand when install fails
 */

/** @type {Step[]} */
const demoSteps = [
  aptStep(hostPackages),
  npmStep,
  goStep,
  goPrograms({
    name: "cnitool",
    version: versions.cnitool,
    dir: bin,
    module: "github.com/containernetworking/cni",
    packages: ["cnitool"],
  }),
  goPrograms({
    name: "CNI plugins",
    version: versions.cniPlugins,
    dir: cniPluginsDir,
    module: "github.com/containernetworking/plugins/plugins",
    packages: [
      "main/bridge",
      "main/ptp",
      "main/loopback",
      "ipam/host-local",
      "meta/tuning",
      "meta/portmap",
    ],
  }),
];

/** @type {Step[]} */
const testSteps = [
  aptStep({ ...hostPackages, ...runtimePackages }),
  ...demoSteps.slice(1),
  goPrograms({
    name: "containerd",
    version: versions.containerd,
    dir: containerdDir,
    module: "github.com/containerd/containerd/v2",
    packages: ["cmd/containerd", "cmd/containerd-shim-runc-v2", "cmd/ctr"],
  }),
  goPrograms({
    name: "crictl",
    version: versions.crictl,
    dir: bin,
    module: "sigs.k8s.io/cri-tools",
    packages: ["cmd/crictl"],
  }),
  kubernetesStep({ name: "Kubernetes", version: versions.kubernetes, dir: kubernetesDir }),
];

// What old nodes have, beside all that the tests need: not for CI.
const oldClusterSteps = [
  ...testSteps,
  kubernetesStep({
    name: "old cluster",
    version: versions.oldKubernetes,
    dir: oldKubernetesDir,
  }),
];

/** @param {string[]} names */
const list = (names) =>
  names.length > 8
    ? `${names.slice(0, 8).join(", ")} and ${names.length - 8} more`
    : names.join(", ");

/** @param {Step} step */
const bring = (step) => {
  process.stdout.write(`setup  ${step.name.padEnd(14)}`);
  const missing = step.missing();
  if (missing.length === 0) return console.log("ready");
  process.stdout.write(`installing: ${list(missing)} ... `);
  const start = Date.now();
  step.install(missing);
  const still = step.missing();
  if (still.length > 0) throw new Error(`still missing after the install: ${list(still)}`);
  console.log(`done in ${Math.round((Date.now() - start) / 1000)} s`);
};

/**
 * @param {Step} step
 * @param {unknown} failure
 */
const explain = (step, failure) => {
  console.log("failed");
  const command = failure instanceof CommandFailure ? failure : undefined;
  const what = command?.outcome ?? (failure instanceof Error ? failure.message : String(failure));
  console.error(`\nset-up failed at the step "${step.name}": ${what}`);
  if (command) console.error(`  command: ${command.command}`);
  for (const line of command?.output ?? []) console.error(`    ${line}`);
  console.error(`  by hand: ${step.advice}`);
  console.error("  then again: npm run setup");
};

/** @param {readonly Step[]} steps */
const setUp = (steps) => {
  for (const step of steps) {
    try {
      bring(step);
    } catch (failure) {
      explain(step, failure);
      return 1;
    }
  }
  return 0;
};

/** @param {string[]} args */
const stepsFor = (args) => {
  switch (args.join(" ")) {
    case "":
      return testSteps;
    case "--only demo":
      return demoSteps;
    case "--only old-cluster":
      return oldClusterSteps;
    default:
      return undefined;
  }
};

const steps = stepsFor(process.argv.slice(2));
if (steps === undefined) console.error("usage: node build/setup.mjs [--only demo|old-cluster]");
process.exitCode = steps === undefined ? 2 : setUp(steps);
