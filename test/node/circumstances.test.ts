// What STATUS' answer hangs on beside the programs: the kubeconfig that the conf names, as the file is now.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test as base, expect } from "vitest";
import { cni, succeeded } from "../fake/call.ts";
import { makeWorld } from "../fake/world.ts";

const test = base.extend("kubeconfig", ({ skip: _ }, { onCleanup }): string => {
  const dir = mkdtempSync(join(tmpdir(), "slc-circumstances-"));
  onCleanup(() => rmSync(dir, { recursive: true }));
  return join(dir, "kubeconfig");
});

/** Calls STATUS in a world in which no kubeconfig can be used; gives what it warns of. */
function makeWarned(): (kubeconfig: string, sluice?: object) => Promise<object[]> {
  let reads = 0;
  const openKube = () => {
    reads += 1;
    return Promise.reject(new Error(`read ${reads} times`));
  };
  const world = makeWorld({ openKube });
  return async (kubeconfig, sluice = {}) => {
    world.lines.length = 0;
    const change = { conf: { kubernetes: { kubeconfig }, sluice } };
    expect(await cni(world, "STATUS", change)).toEqual(succeeded(""));
    return world.lines.filter((line) => "message" in line && line.message !== "done");
  };
}

test("STATUS reads a kubeconfig again when the file has changed, came, or went", async ({
  kubeconfig,
}) => {
  const warned = makeWarned();
  const read = (times: number) => [{ level: "warn", message: `read ${times} times` }];
  const known = (times: number) => [{ level: "debug", message: `read ${times} times` }];
  expect(await warned(kubeconfig)).toEqual(read(1));
  expect(await warned(kubeconfig)).toEqual(known(1));
  writeFileSync(kubeconfig, "one");
  expect(await warned(kubeconfig)).toEqual(read(2));
  expect(await warned(kubeconfig)).toEqual(known(2));
  writeFileSync(kubeconfig, "another");
  expect(await warned(kubeconfig)).toEqual(read(3));
  rmSync(kubeconfig);
  // As before it came, so what was said then holds.
  expect(await warned(kubeconfig)).toEqual(known(1));
});

test("STATUS reads no kubeconfig where none is named, or no pod is asked for", async () => {
  const warned = makeWarned();
  expect(await warned("")).toEqual([]);
  expect(await warned("/k", { "pod-source": "annotations" })).toEqual([]);
});
