// An attachment redirected, observed, repaired and cleaned against the real kernel by this process itself: no request, no
// conf of a network, no plugin.
import { describe, expect } from "vitest";
import { openStore } from "../../../src/attachment/store.ts";
import { monotonicMs } from "../../../src/clock.ts";
import type { Deps } from "../../../src/deps.ts";
import { backends, families } from "../../../src/netfilter/table.ts";
import { execAsync } from "../../../src/netns/exec-async.ts";
import { closeNetns, openNetns } from "../../../src/netns/path.ts";
import { nodeToolbox } from "../../../src/netns/toolbox.ts";
import { openMemory } from "../../../src/node/memory.ts";
import { clean } from "../../../src/upkeep/clean.ts";
import { enter } from "../../../src/upkeep/netns.ts";
import { observe } from "../../../src/upkeep/observe.ts";
import { expectedBy, recordFor, repair } from "../../../src/upkeep/recorded.ts";
import { redirect } from "../../../src/upkeep/redirect.ts";
import type { Entered, Subject, Task } from "../../../src/upkeep/task.ts";
import { settingsWith } from "../../fake/task.ts";
import { complete, loadState, ownLines, save } from "../../lab/states.ts";
import { type Attachment, test } from "./level.ts";

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

const deps: Deps = {
  exec: execAsync,
  toolbox: nodeToolbox(process.env["PATH"]),
  nssMask: () => [],
  clock: { monotonicMs, epochMs: () => Date.now(), sleep: () => Promise.resolve() },
  openNetns,
  closeNetns,
  openStore,
  openMemory,
  openKube: () => Promise.reject(new Error("nobody is to be asked")),
  openLog: () => silent,
};

function taskIn(stateDir: string, settings: Task["settings"]): Task {
  const kept = { store: openStore(stateDir), memory: openMemory(stateDir) };
  return { deps, ...kept, log: silent, remainingMs: () => 20_000, settings };
}

function subjectIn({ netns: { path } }: Attachment): Subject {
  return {
    key: { network: "lab", containerId: "c1", ifName: "eth0" },
    pod: { namespace: "emoji", name: "web" },
    netns: { path, allowOwn: false },
  };
}

async function observed(task: Task, here: Entered) {
  const record = recordFor(task, here);
  if (record === undefined) throw new Error("no record of the attachment");
  return { record, seen: await observe(task, here.netns, await expectedBy(task, record)) };
}

describe.for(backends.map((backend) => ({ backend })))("over $backend", ({ backend }) => {
  test("what redirect() puts in place is observed, repaired, and cleaned again", async ({
    attachment,
  }) => {
    const { netns, stateDir } = attachment;
    const places = families.map((family) => ({ netns, backend, family }));
    const ours = () => places.map((place) => ownLines(save(place)));
    const { settings, plan } = settingsWith({
      "iptables-mode": backend,
      "close-wait-timeout": "90s",
    });
    const task = taskIn(stateDir, settings);
    const subject = subjectIn(attachment);

    await enter(task, subject, async (here) => {
      const done = await redirect(task, here, plan);
      expect(done).toStrictEqual({ families, backend, changed: families });
      expect((await observed(task, here)).seen).toStrictEqual({ kind: "as-intended" });

      for (const place of places) loadState(place, "linkerd-init's rules, interrupted");
      netns.run("sysctl", ["-qw", "net.netfilter.nf_conntrack_tcp_timeout_close_wait=61"]);
      const { record, seen } = await observed(task, here);
      const drifts = seen.kind === "drift" ? seen.drifts.map(({ kind }) => kind) : [];
      expect(drifts).toContain("missing-jump");
      expect(drifts.at(-1)).toBe("changed-sysctl");

      await repair(task, here, record);
      expect(ours()).toStrictEqual([complete, complete]);
      expect((await observed(task, here)).seen).toStrictEqual({ kind: "as-intended" });
    });

    expect(await clean(task, subject)).toStrictEqual({ changed: families, isForgotten: true });
    expect(ours()).toStrictEqual([[], []]);
    expect(attachment.records()).toStrictEqual([]);
  });
});
