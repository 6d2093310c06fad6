// CNI_ARGS as the runtimes write it.
import { expect, test } from "vitest";
import { isNamed, parseArgs, podName, podUid } from "../../src/cni/args.ts";

const containerd =
  "IgnoreUnknown=1;K8S_POD_NAMESPACE=emoji;K8S_POD_NAME=web;K8S_POD_INFRA_CONTAINER_ID=c0ffee;K8S_POD_UID=u1";

const pairs: [when: string, args: string, found: Record<string, string>][] = [
  ["it is empty", "", {}],
  ["there is one pair", "A=1", { A: "1" }],
  ["a value holds =", "A=1=2;B==", { A: "1=2", B: "=" }],
  ["a value is empty", "A=;B=2", { A: "", B: "2" }],
  ["a key is empty", "=1;B=2", { B: "2" }],
  ["something is no pair", "A;B=2;;", { B: "2" }],
  ["a key is there twice", "A=1;A=2", { A: "2" }],
];

test.each(pairs)("parseArgs() takes the pairs when %s", (_, args, found) => {
  expect(Object.fromEntries(parseArgs(args))).toEqual(found);
});

const pods: [when: string, args: string, pod: { namespace: string; name: string }][] = [
  ["containerd names it", containerd, { namespace: "emoji", name: "web" }],
  ["nobody names it", "IgnoreUnknown=1;IP=10.0.0.2", { namespace: "", name: "" }],
  ["only the name is there", "K8S_POD_NAME=web", { namespace: "", name: "web" }],
];

test.each(pods)("podName() gives the pod when %s", (_, args, pod) => {
  expect(podName(parseArgs(args))).toEqual(pod);
});

test.each([
  [containerd, "u1"],
  ["K8S_POD_UID=", ""],
  ["K8S_POD_NAME=web", ""],
])("podUid() of %j is %j", (args, uid) => {
  expect(podUid(parseArgs(args))).toBe(uid);
});

test("isNamed() wants the whole name", () => {
  const named = (namespace: string, name: string) => isNamed({ namespace, name });
  expect([named("", ""), named("a", ""), named("", "b"), named("a", "b")]).toEqual([
    false,
    false,
    false,
    true,
  ]);
});
