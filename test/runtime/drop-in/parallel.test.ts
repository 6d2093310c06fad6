// Fifty pods at once, as after a node's restart, on an API server that is slow or does not answer: each is redirected, or
// each is an error; none starts without its rules (linkerd2#5809).
import { expect, onTestFinished } from "vitest";
import type { ApiStub } from "../../lab/api-stub.ts";
import {
  type Answer,
  type Attachment,
  confFor,
  makeAttachment,
  removeAttachment,
  rulesIn,
  test,
} from "./level.ts";

const count = 50;

type Started = { readonly pod: Attachment; readonly answer: Answer };

/** Starts them all, each on a node of its own but for the API server. */
async function startAll(api: ApiStub, seconds: number): Promise<Started[]> {
  const pods: Attachment[] = [];
  onTestFinished(() => pods.splice(0).forEach(removeAttachment));
  for (let i = 0; i < count; i++) pods.push(makeAttachment(api, "many"));
  const sluice = { "timeout-seconds": seconds };
  return await Promise.all(
    pods.map(async (pod) => ({ pod, answer: await pod.call("ADD", confFor(pod, { sluice })) })),
  );
}

/** How many calls ended how: exit status, code, and how many rules there are. */
function tally(started: readonly Started[]): Record<string, number> {
  const endings = started.map(({ pod, answer }) => {
    const code: unknown = JSON.parse(answer.stdout).code ?? "none";
    return `exit ${answer.exitCode}, code ${code}, ${rulesIn(pod).length} rules`;
  });
  return Object.fromEntries(
    [...new Set(endings)].map((ending) => [
      ending,
      endings.filter((other) => other === ending).length,
    ]),
  );
}

// The pod `pod` is asked for so that it is skipped where no netns can be made.
test("50 ADDs at once are all right when the API server is slow", async ({ api, pod: _ }) => {
  api.mode = "late";
  const started = await startAll(api, 60);
  expect(tally(started)).toEqual({ "exit 0, code none, 7 rules": count });
  expect(api.requests.length).toBe(2 * count);
});

test("50 ADDs at once are all errors when the API server does not answer", async ({
  api,
  pod: _,
}) => {
  api.mode = "hang";
  const started = await startAll(api, 4);
  expect(tally(started)).toEqual({ "exit 1, code 11, 0 rules": count });
});
