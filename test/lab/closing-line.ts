// Counts a run's tests for the line that closes a CI run, which is all that some readers look at.
import { writeFileSync } from "node:fs";
import type { Reporter, TestModule } from "vitest/node";

export interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/** A file that does not load, a suite whose hook fails, and an error outside any test are failures too. */
export function countTests(modules: readonly TestModule[], unhandled: readonly unknown[]): Counts {
  const counts: Counts = { passed: 0, failed: unhandled.length, skipped: 0 };
  for (const module of modules) {
    for (const suite of [module, ...module.children.allSuites()]) {
      if (suite.errors().length > 0) counts.failed += 1;
    }
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      counts[state === "pending" ? "failed" : state] += 1;
    }
  }
  return counts;
}

/** Writes the counts to the file that SLUICE_TEST_COUNTS names, or prints them. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]) {
    const counts = countTests(modules, unhandled);
    const file = process.env["SLUICE_TEST_COUNTS"];
    if (file) {
      writeFileSync(file, JSON.stringify(counts));
      return;
    }
    const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : "";
    console.log(`${counts.passed} passed, ${counts.failed} failed${skipped}`);
  }
}
