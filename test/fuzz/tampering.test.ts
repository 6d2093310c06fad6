// Whatever is done to a pod's tables, before ADD and after: a yes of CHECK means that the kernel sends the pod's connections
// to the proxy, no rule of others' is touched, and what a DEL leaves of ours is still known.
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Backend, backends } from "../../src/netfilter/table.ts";
import { requireRoot } from "../level/faults/node.ts";
import { call, type Subject } from "../level/faults/run/call.ts";
import { type Command, tampering } from "./arbitrary/tampering.ts";
import { holds, timeoutMs, toTheEnd } from "./budget.ts";
import { makePod, type Pod } from "./pod.ts";

const part = 0.3;

test("a pod that is tampered with", { timeout: timeoutMs }, async ({ skip }) => {
  requireRoot(skip);
  const given = fc.record({
    backend: fc.constantFrom(...backends),
    before: tampering,
    after: tampering,
  });
  const tryOne = toTheEnd(async ({ backend, before, after }: Tampering & { backend: Backend }) => {
    const pod = await makePod();
    const stateDir = mkdtempSync(join(tmpdir(), "slc-fuzz-"));
    try {
      await judge(pod, { netns: pod.netns, backend, stateDir }, { before, after });
    } finally {
      pod.remove();
      rmSync(stateDir, { recursive: true, force: true });
    }
  });
  await holds(fc.asyncProperty(given, tryOne), { part });
});

type Tampering = { readonly before: readonly Command[]; readonly after: readonly Command[] };

async function judge(pod: Pod, subject: Subject, { before, after }: Tampering): Promise<void> {
  await pod.tamper(before);
  const first = await pod.foreign();
  const add = await call("ADD", subject);
  expect(await pod.foreign()).toEqual(first);
  if (add.exitCode === 0) await judgeYes(pod, subject);
  await pod.tamper(after);
  const second = await pod.foreign();
  await judgeYes(pod, subject);
  await call("ADD", subject);
  expect(await pod.foreign()).toEqual(second);
  await judgeYes(pod, subject);
  const del = await call("DEL", subject);
  expect(del).toMatchObject({ exitCode: 0, stdout: "" });
  expect(await pod.foreign()).toEqual(second);
  // Nothing of ours is left, or a later DEL knows of it.
  const left = await pod.filled();
  const isKnown = records(subject).length > 0;
  expect({ left, isKnown }).toEqual({ left: isKnown ? left : [], isKnown });
}

async function judgeYes(pod: Pod, subject: Subject): Promise<void> {
  const { exitCode, stdout } = await call("CHECK", subject);
  if (exitCode !== 0)
    expect(JSON.parse(stdout)).toMatchObject({ code: expect.toBeOneOf([100, 11]) });
  else expect(await pod.passedBy(subject.backend)).toEqual([]);
}

function records({ stateDir }: Subject): string[] {
  return readdirSync(join(stateDir, "attachments"));
}
