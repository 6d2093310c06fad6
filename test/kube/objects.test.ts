// What is read of the API's objects, and what is taken for none of them.
import { describe, expect, test } from "vitest";
import { readNamespace, readPod, readServicePorts } from "../../src/kube/objects.ts";
import type { PodSpec } from "../../src/mesh/pod.ts";
import {
  namespaceObject,
  type PodWish,
  podObject,
  podUid,
  serviceObject,
} from "../lab/api-objects.ts";

const container = (name: string, runAsUser?: number) => ({ name, runAsUser });
const spec: PodSpec = {
  hostNetwork: false,
  labels: {},
  containers: [container("app"), container("linkerd-proxy")],
  initContainers: [],
};
const facts = { uid: podUid, isMirror: false, annotations: {}, spec };
const mirror = {
  "kubernetes.io/config.mirror": "d1",
  "kubernetes.io/config.hash": "d1",
  "kubernetes.io/config.source": "file",
};
const fromFile = { "kubernetes.io/config.source": "file" };
const fromApi = { "kubernetes.io/config.source": "api", "kubernetes.io/config.mirror": "" };
const label = { "linkerd.io/control-plane-component": "destination" };
const pods: [what: string, wish: PodWish, found: object][] = [
  ["nothing", {}, facts],
  [
    "the marks of a static pod",
    { annotations: mirror },
    { ...facts, isMirror: true, annotations: mirror },
  ],
  [
    "a source that is a file",
    { annotations: fromFile },
    { ...facts, isMirror: true, annotations: fromFile },
  ],
  ["a source that is the API", { annotations: fromApi }, { ...facts, annotations: fromApi }],
  ["annotations", { annotations: { a: "1" } }, { ...facts, annotations: { a: "1" } }],
  ["labels", { labels: label }, { ...facts, spec: { ...spec, labels: label } }],
  ["the node's network", { hostNetwork: true }, { ...facts, spec: { ...spec, hostNetwork: true } }],
  [
    "a native sidecar",
    { containers: [{ name: "app" }], initContainers: [{ name: "linkerd-proxy", runAsUser: 2102 }] },
    {
      ...facts,
      spec: {
        ...spec,
        containers: [container("app")],
        initContainers: [container("linkerd-proxy", 2102)],
      },
    },
  ],
  [
    "a user for all, and one of a container's own",
    { runAsUser: 1000, containers: [{ name: "app" }, { name: "linkerd-proxy", runAsUser: 2102 }] },
    {
      ...facts,
      spec: { ...spec, containers: [container("app", 1000), container("linkerd-proxy", 2102)] },
    },
  ],
];

test.each(pods)("readPod() reads a pod with %s", (_, wish, found) => {
  expect(readPod(podObject(wish))).toEqual(found);
});

test("readPod() reads nulls, as other encoders write them, as what is not set", () => {
  const metadata = { uid: null, annotations: null, labels: null };
  const none = { containers: null, initContainers: null, securityContext: null };
  expect(readPod({ kind: "Pod", metadata, spec: none })).toEqual({
    ...facts,
    uid: "",
    spec: { ...spec, containers: [] },
  });
});

test("readNamespace() reads annotations", () => {
  expect([readNamespace(namespaceObject()), readNamespace(namespaceObject({ a: "1" }))]).toEqual([
    {},
    { a: "1" },
  ]);
});

const port = (number: number) => ({ from: number, to: number });

test("readServicePorts() reads ports, and target ports that are numbers", () => {
  expect([
    readServicePorts(serviceObject(443, 6443)),
    readServicePorts(serviceObject(443, "https")),
  ]).toEqual([[port(443), port(6443)], [port(443)]]);
});

const list = { kind: "PodList", apiVersion: "v1", metadata: {}, items: [] };
const status = { kind: "Status", status: "Failure", code: 404 };
const other = { readPod, readNamespace, readServicePorts } as const;
const strangers: [what: string, reader: keyof typeof other, document: unknown][] = [
  ["a list of pods", "readPod", list],
  ["a Status", "readPod", status],
  ["a namespace", "readPod", namespaceObject()],
  ["null", "readPod", null],
  ["a text", "readPod", "pod"],
  [
    "a pod whose annotation is no text",
    "readPod",
    { ...podObject(), metadata: { annotations: { a: 1 } } },
  ],
  ["a pod without spec", "readPod", { kind: "Pod", metadata: {} }],
  ["a pod", "readNamespace", podObject()],
  ["a Status", "readNamespace", status],
  ["a pod", "readServicePorts", podObject()],
  ["a service of port 0", "readServicePorts", serviceObject(0)],
  ["a service of port 65536", "readServicePorts", serviceObject(443, 65536)],
];

describe.each(strangers)("given %s", (_, reader, document) => {
  test(`${reader}() throws`, () => {
    expect(() => other[reader](document)).toThrow();
  });
});
