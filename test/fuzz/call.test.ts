// Whatever a call is like: it ends, says one CNI JSON or nothing, gives no secret away, writes nothing but its records and
// its log, leaves the node alone, and a DEL after it leaves nothing of ours in the pod.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { CniAnswer } from "../lab/plugin.ts";
import { requireRoot } from "../level/faults/node.ts";
import { readAll } from "../level/faults/run/tables.ts";
import { type AnyCall, anyCall, kubeconfig, secrets } from "./arbitrary/call.ts";
import { holds, timeoutMs, toTheEnd } from "./budget.ts";
import { type FuzzNode, makeFuzzNode, rulesIn } from "./node.ts";
import { ownWords } from "./own-words.ts";

const part = 0.25;

test("any environment and any stdin", { timeout: timeoutMs }, async ({ skip }) => {
  requireRoot(skip);
  // Placeholders, so that a counterexample is not about a directory of one run.
  const tryOne = toTheEnd(async (call: AnyCall) => {
    const node = makeFuzzNode(kubeconfig);
    try {
      await judge(node, onNode(call, node));
    } finally {
      node.remove();
    }
  });
  await holds(fc.asyncProperty(anyCall("DIRECTORY", "NETNS"), tryOne), { part });
});

async function judge(node: FuzzNode, { env, stdin }: AnyCall): Promise<void> {
  const before = await rulesIn(node.host);
  const answer = await node.call(env, stdin);
  judgeAnswer(answer, env);
  const written = [...(await readAll(node.pod)).values()].flatMap(({ own }) => own);
  expect(written.filter((line) => line.startsWith("-A") && !ownWords.test(line))).toEqual([]);
  const del = await node.call({ ...env, CNI_COMMAND: "DEL" }, stdin);
  judgeAnswer(del, env);
  const left = [...(await readAll(node.pod)).values()].flatMap(({ own }) => own);
  expect(left).toEqual([]);
  expect(node.files().filter((name) => !mayStay.test(name))).toEqual([]);
  const said = [answer, del].flatMap(({ stdout, stderr }) => [stdout, stderr]);
  const told = [...said, node.written()].join("\n");
  expect(secrets.filter((secret) => told.includes(secret))).toEqual([]);
  expect(await rulesIn(node.host)).toBe(before);
}

/** All that a node may keep when a DEL has been. */
const mayStay = /^(?:etc\/|state\/|state\/attachments\/|state\/locks\/|state\/backend\.json|log)$/;

function judgeAnswer(answer: CniAnswer & { ended: boolean }, env: AnyCall["env"]): void {
  const { exitCode, stdout, stderr, ended } = answer;
  expect({ ended, exitCode }).toEqual({ ended: true, exitCode: expect.toBeOneOf([0, 1]) });
  const document: unknown = stdout === "" ? {} : JSON.parse(stdout);
  const error = {
    cniVersion: expect.any(String),
    code: expect.any(Number),
    msg: expect.any(String),
  };
  if (exitCode === 1) expect(document).toMatchObject(error);
  expect(document).toEqual(expect.any(Object));
  expect(document).not.toMatchObject({ code: 999 });
  // Called without a verb, it says what it is.
  if ((env["CNI_COMMAND"] ?? "") === "") return;
  for (const line of stderr.split("\n")) if (line !== "") JSON.parse(line);
}

// What a generated call says of the node's directory and the pod's netns, put in.
function onNode({ env, stdin }: AnyCall, node: FuzzNode): AnyCall {
  const put = (text: string) =>
    text.replaceAll("DIRECTORY", node.dir).replaceAll("NETNS", node.pod.path);
  const placed = Object.entries(env).map(([key, value]) => [key, put(value)] as const);
  return {
    env: Object.fromEntries(placed),
    stdin: typeof stdin === "string" ? put(stdin) : stdin,
  };
}
