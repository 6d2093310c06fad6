// The tests that mutants are tried on: the pure level, without those that are not about src/. One process for all files: no
// test changes what another one reads, and loading everything anew for each file takes most of the time.
import { defineConfig } from "vitest/config";
import { pureFiles } from "../../vitest.config.ts";

export default defineConfig({
  test: {
    include: pureFiles,
    exclude: ["test/{build,bench,mutants}/**"],
    isolate: false,
  },
});
