// What is special about the artifacts: an executable started from a snapshot must be of the call and not of the build, must
// hold nothing of the builder, and must start and load no more than it needs.
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { execa, execaSync } from "execa";
import { test as base, describe, expect } from "vitest";
import about from "../../package.json" with { type: "json" };
import { countStarted, straceArgv } from "../../build/bench/strace.ts";
import { bundle, node, plugin, root } from "../lab/plugin.ts";
import { confOf, logLine, test as netnsTest } from "../netns/level.ts";

const test = base.extend("dir", ({}, { onCleanup }): string => {
  const dir = mkdtempSync(join(tmpdir(), "slc-executable-"));
  onCleanup(() => rmSync(dir, { recursive: true }));
  return dir;
});
