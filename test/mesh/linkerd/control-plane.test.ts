// Which pods are held to be of Linkerd's own control plane.
import { expect, test } from "vitest";
import { controlPlane } from "../../../src/mesh/linkerd/control-plane.ts";
import type { Annotations } from "../../../src/mesh/pod.ts";

const label = "linkerd.io/control-plane-component";
const labels: [labels: Annotations, is: boolean][] = [
  [{}, false],
  [{ [label]: "" }, false],
  [{ [label]: "destination" }, true],
];

test.each(labels)("controlPlane() goes by the label where there is a spec: %j", (given, is) => {
  const spec = { hostNetwork: false, labels: given, containers: [], initContainers: [] };
  const annotations = { [by]: "linkerd/helm edge-26.7.1" };
  for (const isListed of [false, true]) {
    expect(controlPlane({ annotations, spec }, isListed)).toEqual({ isControlPlane: is });
  }
});

const by = "linkerd.io/created-by";
const inject = "linkerd.io/inject";
const warning =
  "made by Linkerd's chart or command line, in a namespace that sluice.control-plane-namespace does not name: if it is the control plane, it cannot reach the API server";
type Row = [annotations: Annotations, listed: object, unlisted: object];
const unknown = (annotations: Annotations): Row => [
  annotations,
  { isControlPlane: true },
  { isControlPlane: false },
];
const installed = (annotations: Annotations): Row => [
  annotations,
  { isControlPlane: true },
  { isControlPlane: false, warning },
];
const injected = (annotations: Annotations): Row => [
  annotations,
  { isControlPlane: false },
  { isControlPlane: false },
];
const origins: Row[] = [
  unknown({}),
  unknown({ [by]: "linkerd/helmet" }),
  unknown({ [by]: "somebody" }),
  installed({ [by]: "linkerd/helm edge-26.7.1" }),
  installed({ [by]: "linkerd/cli dev-undefined" }),
  installed({ [by]: "linkerd/helm", [inject]: "disabled" }),
  injected({ [by]: "linkerd/proxy-injector edge-26.7.1" }),
  injected({ [by]: "linkerd/cli stable-2.9", [inject]: "enabled" }),
  injected({ [inject]: "ingress" }),
];

test.each(origins)("controlPlane() guesses by namespace and annotations %j", (...row) => {
  const [annotations, listed, unlisted] = row;
  const known = { annotations, spec: undefined };
  expect([controlPlane(known, true), controlPlane(known, false)]).toEqual([listed, unlisted]);
});
