// The test levels: pure needs nothing, fuzz needs what it is told to try (npm run fuzz), netns needs root and a kernel,
// runtime needs the built executable, cluster needs Kubernetes' programs as well (npm run setup builds them).
import { defineConfig } from "vitest/config";

const level = (name: string, include: string[], serial: boolean) => ({
  test: {
    name,
    include,
    fileParallelism: !serial,
    testTimeout: serial ? 60_000 : 5_000,
    hookTimeout: 60_000,
  },
});

// One worker for all its files: they share a cluster, which takes its time to come up.
const cluster = {
  test: {
    name: "cluster",
    include: ["test/level/cluster/**/*.test.ts"],
    fileParallelism: false,
    isolate: false,
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
};

/** The files of the level that needs nothing. */
export const pureFiles: string[] = [
  "test/*.test.ts",
  "test/{text,cni,conf,mesh,redirect,netfilter,netns,state,node,attachment,kube,upkeep,command,docs,build,bench,mutants}/**/*.test.ts",
];

export default defineConfig({
  test: {
    reporters: process.env["CI"] ? ["default", "./test/lab/closing-line.ts"] : ["default"],
    projects: [
      level("pure", pureFiles, false),
      // One file after another: their time is shared out, and the executable's properties start many processes.
      level("fuzz", ["test/fuzz/**/*.test.ts"], true),
      level("netns", ["test/level/{netns,faults}/**/*.test.ts"], true),
      level("runtime", ["test/level/runtime/**/*.test.ts"], true),
      cluster,
    ],
  },
});
