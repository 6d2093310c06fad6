// Which pods are redirected, and what is odd about them.
import { expect, test } from "vitest";
import { isMarked, oddities, proxyOf, skipReason } from "../../../src/mesh/linkerd/pod.ts";
import type { Annotations, Container, PodSpec } from "../../../src/mesh/pod.ts";

const named = (name: string, runAsUser?: number): Container => ({ name, runAsUser });
const proxy = named("linkerd-proxy", 2102);
const meshed: PodSpec = {
  hostNetwork: false,
  labels: {},
  containers: [named("app"), proxy],
  initContainers: [],
};

const marks: [annotations: Annotations, reason: string | undefined][] = [
  [{ "linkerd.io/proxy-version": "stable-2.14" }, undefined],
  [
    { "linkerd.io/proxy-version": "" },
    "no annotation linkerd.io/proxy-version: the pod has no proxy",
  ],
  [
    { "linkerd.io/inject": "enabled" },
    "no annotation linkerd.io/proxy-version: the pod has no proxy",
  ],
  [{}, "no annotation linkerd.io/proxy-version: the pod has no proxy"],
];

test.each(marks)(
  "skipReason() goes by the injector's mark %j when there is no spec",
  (annotations, reason) => {
    expect(skipReason({ annotations, spec: undefined })).toBe(reason);
  },
);

const init = "the pod has an init container linkerd-init, which sets up the rules itself";
const specs: [when: string, change: Partial<PodSpec>, reason: string | undefined][] = [
  ["it has a proxy", {}, undefined],
  [
    "its proxy is a native sidecar",
    { containers: [named("app")], initContainers: [proxy] },
    undefined,
  ],
  ["it has no proxy", { containers: [named("app")] }, "no container linkerd-proxy"],
  ["its proxy has another name", { containers: [named("envoy")] }, "no container linkerd-proxy"],
  ["it has linkerd-init", { initContainers: [named("linkerd-init")] }, init],
  ["it has the validator", { initContainers: [named("linkerd-network-validator")] }, undefined],
  ["it is on the node's network", { hostNetwork: true }, "the pod is on the node's network"],
];

test.each(specs)("skipReason() goes by the spec when %s", (_, change, reason) => {
  expect(skipReason({ annotations: {}, spec: { ...meshed, ...change } })).toBe(reason);
});

test("proxyOf() finds the proxy in either list", () => {
  expect(proxyOf(meshed)).toEqual(proxy);
  expect(proxyOf({ ...meshed, containers: [], initContainers: [proxy] })).toEqual(proxy);
  expect(proxyOf({ ...meshed, containers: [] })).toBe(undefined);
});

const passing = "containers with the proxy's uid 2102 pass the proxy by:";
const cutOff =
  "init containers run before the proxy and have no network but excluded ports (exclude their ports, or run them as uid 2102):";
const odd: [when: string, change: Partial<PodSpec>, sentences: string[]][] = [
  ["nothing is odd", {}, []],
  [
    "an app has the proxy's uid",
    { containers: [named("a", 2102), named("b", 1), proxy] },
    [`${passing} a`],
  ],
  ["two have it", { containers: [named("a", 2102), named("b", 2102), proxy] }, [`${passing} a, b`]],
  ["an init container is there", { initContainers: [named("db-wait")] }, [`${cutOff} db-wait`]],
  ["it has the proxy's uid", { initContainers: [named("db-wait", 2102)] }, []],
  ["it comes after the native sidecar", { initContainers: [proxy, named("db-wait")] }, []],
  [
    "it comes before the native sidecar",
    { initContainers: [named("db-wait"), proxy] },
    [`${cutOff} db-wait`],
  ],
  ["it is Linkerd's own", { initContainers: [named("linkerd-network-validator")] }, []],
];

test.each(odd)("oddities() says what will surprise when %s", (_, change, sentences) => {
  expect(oddities({ ...meshed, ...change }, 2102)).toEqual(sentences);
});

test("isMarked() goes by the injector's annotation", () => {
  const key = "linkerd.io/proxy-version";
  expect([{}, { [key]: "" }, { [key]: "edge" }].map(isMarked)).toEqual([false, false, true]);
});
