// Pods of kube-system, by the executable itself and an API server: they are judged as any others, and start all the same
// when nobody answers; a list of namespaces that somebody wrote goes before.
import { expect } from "vitest";
import { objectsFor, type PodWish, paths } from "../../../lab/api-objects.ts";
import type { Mode } from "../../../lab/api-stub.ts";
import { argsOf, confFor, doneLine, type Keys, lookInto, test, warningsOf } from "./level.ts";

const inKubeSystem = { CNI_ARGS: argsOf({ namespace: "kube-system", name: "web" }) };
const podPath = paths.pod.replace("emoji", "kube-system");

function objectsOf(pod: PodWish): Record<string, object> {
  const { [paths.pod]: found, [paths.namespace]: namespace } = objectsFor(pod);
  return { [podPath]: found, [paths.namespace.replace("emoji", "kube-system")]: namespace };
}

const unanswered = "the API server does not answer, and the pod is in kube-system";
const excluded = "namespace kube-system is excluded";
const none = { "exclude-namespaces": [] };

type Comes = { readonly rules?: true; readonly skipped?: string; readonly code?: number };

const rows: [when: string, mode: Mode, sluice: Keys, comes: Comes][] = [
  ["has a proxy", "ok", {}, { rules: true }],
  ["is refused", "403", {}, { code: 103 }],
  ["gets no answer", "hang", {}, { skipped: unanswered }],
  ["is to be asked for later", "503", {}, { skipped: unanswered }],
  ["gets no answer, and no namespace is excluded", "hang", none, { code: 11 }],
  [
    "has a proxy, and is excluded by name",
    "ok",
    { "exclude-namespaces": ["kube-system"] },
    { skipped: excluded },
  ],
];

test.concurrent.for(rows)("ADD for a pod of kube-system that %s", async (row, { api, pod }) => {
  const [, mode, sluice, { rules, skipped, code }] = row;
  api.objects = objectsOf({});
  api.mode = mode;
  const conf = confFor(pod, { sluice: { "timeout-seconds": 5, ...sluice } });

  const answer = await pod.call("ADD", conf, inKubeSystem);

  const { code: told } = JSON.parse(answer.stdout);
  expect([answer.exitCode, told]).toEqual([code === undefined ? 0 : 1, code]);
  expect(lookInto(pod).untouched).toBe(rules === undefined);
  expect(doneLine(answer)?.["skipped"]).toBe(skipped);
  expect(warningsOf(answer).includes(unanswered)).toBe(skipped === unanswered);
  expect(api.requests.length > 0).toBe(skipped !== excluded);
});

test("ADD for a pod of kube-system without a proxy takes one question", async ({ api, pod }) => {
  api.objects = objectsOf({ containers: [{ name: "coredns" }] });
  const answer = await pod.call("ADD", confFor(pod), inKubeSystem);
  expect([answer.exitCode, doneLine(answer)?.["skipped"]]).toEqual([
    0,
    "no container linkerd-proxy",
  ]);
  expect(api.requests).toEqual([`GET ${podPath}`]);
});

test("ADD for a pod of kube-system does not wait for a kubeconfig that is not there", async ({
  pod,
}) => {
  const top = { kubernetes: { kubeconfig: "/nonexistent/kubeconfig" } };
  const conf = confFor(pod, { top, sluice: { "timeout-seconds": 5 } });
  const answer = await pod.call("ADD", conf, inKubeSystem);
  expect([answer.exitCode, warningsOf(answer)]).toEqual([0, [unanswered]]);
  expect(lookInto(pod).untouched).toBe(true);
});
