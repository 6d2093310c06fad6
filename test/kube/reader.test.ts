// The objects that ADD asks for: one GET each, and an error for what is another object.
import { expect } from "vitest";
import { type KubeReader, openReader } from "../../src/kube/reader.ts";
import { cniError, rejectionOf } from "../fake/thrown.ts";
import { objectsFor, paths, podUid, serviceObject } from "../lab/api-objects.ts";
import { linkerdKubeconfig } from "../lab/kubeconfig.ts";
import { settingsFor, test } from "./level.ts";

const annotations = { a: "pod" };
const container = (name: string) => ({ name, runAsUser: undefined });
const pod = {
  uid: podUid,
  isMirror: false,
  annotations,
  spec: {
    hostNetwork: false,
    labels: {},
    containers: [container("app"), container("linkerd-proxy")],
    initContainers: [],
  },
};
const ports = [
  { from: 443, to: 443 },
  { from: 8443, to: 8443 },
];
type Ask = (reader: KubeReader) => Promise<unknown>;
const asks: [what: string, ask: Ask, path: string, found: unknown][] = [
  ["pod()", (reader) => reader.pod("emoji", "web"), paths.pod, pod],
  [
    "namespaceAnnotations()",
    (reader) => reader.namespaceAnnotations("emoji"),
    paths.namespace,
    { a: "namespace" },
  ],
  ["apiServerPorts()", (reader) => reader.apiServerPorts(), paths.service, ports],
];

test.for(asks)("openReader().%s is one GET", async ([, ask, path, found], { api, files }) => {
  api.objects = {
    ...objectsFor({ annotations }, { a: "namespace" }),
    [paths.service]: serviceObject(443, 8443),
  };
  const { settings } = settingsFor(files.write("kubeconfig", linkerdKubeconfig(api)), 20_000);
  expect(await ask(await openReader(settings))).toEqual(found);
  expect(api.requests).toEqual([`GET ${path}`]);
});

test.for(asks)("openReader().%s refuses another object", async ([, ask, path], { api, files }) => {
  api.mode = "other";
  const { settings } = settingsFor(files.write("kubeconfig", linkerdKubeconfig(api)), 20_000);
  expect(await rejectionOf(openReader(settings).then(ask))).toEqual(
    cniError(
      103,
      `the answer to GET ${path} is not the object asked for`,
      "see that the kubeconfig's server is a Kubernetes API server",
    ),
  );
});

test("openReader().pod() leaves the path to the server as it is, whatever the name", async ({
  api,
  files,
}) => {
  const { settings } = settingsFor(files.write("kubeconfig", linkerdKubeconfig(api)), 20_000);
  const reader = await openReader(settings);
  const error = await rejectionOf(reader.pod("../../x?y#z", "..%2f\r\nHost: x"));
  expect(error).toMatchObject({ code: 103 });
  expect([...new Set(api.requests)]).toEqual([
    "GET /api/v1/namespaces/..%2F..%2Fx%3Fy%23z/pods/..%252f%0D%0AHost%3A%20x",
  ]);
});
