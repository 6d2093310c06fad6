// Fifty pods at once, as after a node's restart, on an API server that does not answer, and then is slow: each is an error,
// or each is redirected; none starts without its rules (linkerd2#5809).
import { expect, onTestFinished } from "vitest";
import type { ApiStub } from "../../../lab/api-stub.ts";
import {
  type Attachment,
  confFor,
  lookInto,
  makeAttachment,
  removeAttachment,
  test,
} from "./level.ts";

const count = 50;

/** Starts them all; gives how many calls ended how: exit status, code, and how many rules there are. */
async function startAll(pods: readonly Attachment[], seconds: number) {
  const sluice = { "timeout-seconds": seconds };
  const answers = await Promise.all(pods.map((pod) => pod.call("ADD", confFor(pod, { sluice }))));
  const tally: Record<string, number> = {};
  for (const [i, pod] of pods.entries()) {
    const { exitCode, stdout = "{}" } = answers[i] ?? {};
    const code: unknown = JSON.parse(stdout).code ?? "none";
    const ending = `exit ${exitCode}, code ${code}, ${lookInto(pod).rules.ipv4.length} rules`;
    tally[ending] = (tally[ending] ?? 0) + 1;
  }
  return tally;
}

function makeAll(api: ApiStub): Attachment[] {
  const pods: Attachment[] = [];
  onTestFinished(() => pods.forEach(removeAttachment));
  for (let i = 0; i < count; i++) pods.push(makeAttachment(api, "many"));
  return pods;
}

// The pod `pod` is asked for so that all is skipped where no netns can be made.
test("50 ADDs at once are all errors, or all right", async ({ api, pod: _ }) => {
  const pods = makeAll(api);

  api.mode = "hang";
  expect(await startAll(pods, 4)).toEqual({ "exit 1, code 11, 0 rules": count });

  api.mode = "late";
  api.requests.length = 0;
  expect(await startAll(pods, 60)).toEqual({ "exit 0, code none, 7 rules": count });
  expect(api.requests.length).toBeGreaterThanOrEqual(2 * count);
});
