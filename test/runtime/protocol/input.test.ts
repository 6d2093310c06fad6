// What runtimes send beside prevResult: keys that nobody asked for, annotations in all forms, CNI_ARGS as they come.
import { expect } from "vitest";
import { commandLine, failure, linesOf, linkerd, prevResult, test } from "./scene.ts";

const capability = "io.kubernetes.cri.pod-annotations";
const meshed = { "linkerd.io/proxy-version": "stable-2.14" };
const unmeshed = "no annotation linkerd.io/proxy-version: the pod has no proxy";
const args = "K8S_POD_NAMESPACE=emoji;K8S_POD_NAME=web";

const redirected = { families: ["ipv4"], backend: "nft", changed: ["ipv4"], execs: 1 };
const left = { skipped: unmeshed, execs: 0 };

const configs: [when: string, keys: object, told: object][] = [
  ["a pod's annotations", { runtimeConfig: { [capability]: meshed } }, redirected],
  ["annotations that are null", { runtimeConfig: { [capability]: null } }, left],
  ["annotations that are empty", { runtimeConfig: { [capability]: {} } }, left],
  ["annotations that are no object", { runtimeConfig: { [capability]: "x" } }, left],
  [
    "annotations that are no strings",
    { runtimeConfig: { [capability]: { ...meshed, n: 1, o: {} } } },
    redirected,
  ],
  [
    "the capability in capitals",
    { runtimeConfig: { [capability.toUpperCase()]: meshed } },
    redirected,
  ],
  ["runtimeConfig in capitals", { RUNTIMECONFIG: { [capability]: meshed } }, redirected],
  [
    "containerd's other capabilities",
    {
      runtimeConfig: {
        [capability]: meshed,
        portMappings: [{ HostPort: 1 }],
        dns: { Servers: [] },
        bandwidth: null,
      },
    },
    redirected,
  ],
];

test.concurrent.for(configs)(
  "ADD knows the pod when runtimeConfig holds %s",
  async ([, keys, told], { scene }) => {
    const conf = scene.conf({ kubernetes: {}, capabilities: { [capability]: true }, ...keys });
    const answer = await scene.call("ADD", conf, { env: { CNI_ARGS: args } });
    expect([answer.exitCode, answer.stdout]).toEqual([0, JSON.stringify(prevResult)]);
    expect(commandLine(answer)).toEqual(lineOf("ADD", { namespace: "emoji", name: "web" }, told));
  },
);

const without: [when: string, keys: object][] = [
  ["there is no runtimeConfig", {}],
  ["runtimeConfig is null", { runtimeConfig: null }],
  ["runtimeConfig is a list", { runtimeConfig: [] }],
  ["runtimeConfig has other capabilities", { runtimeConfig: { portMappings: [] } }],
];

test.concurrent.for(without)(
  "ADD says that it cannot know the pod when %s",
  async ([, keys], { scene }) => {
    const conf = scene.conf({ kubernetes: {}, ...keys });
    const { exitCode, stdout } = await scene.call("ADD", conf, { env: { CNI_ARGS: args } });
    const how = `the runtime sent no ${capability} (set it in the entry's capabilities), and kubernetes.kubeconfig is not set`;
    const error = failure(7, "invalid conf: there is no way to know the pod", how);
    expect([exitCode, stdout]).toEqual([1, error]);
  },
);

test("ADD takes keys that libcni leaves or adds, and names those that nobody reads", async ({
  scene,
}) => {
  const conf = scene.conf({
    capabilities: { portMappings: true },
    runtimeConfig: { portMappings: [] },
    args: { cni: { labels: [] } },
    ipam: {},
    dns: { nameservers: [] },
    ipMasq: true,
    disableCheck: true,
    cniVersions: ["1.1.0"],
    "cni.dev/valid-attachments": [],
    "cni.dev/other": 1,
    Linkerd: {},
    linkerd: { ...linkerd, "proxy-udi": 1 },
  });
  const { exitCode, stderr } = await scene.call("ADD", conf);
  expect(exitCode).toBe(0);
  const named = linesOf(stderr).flatMap(({ keys }) => (Array.isArray(keys) ? [keys] : []));
  expect(named).toEqual([["disableCheck", "Linkerd", "linkerd.proxy-udi"]]);
});

const pods: [args: string, namespace: string, name: string][] = [
  [
    "IgnoreUnknown=1;K8S_POD_NAMESPACE=ns1;K8S_POD_NAME=pod1;K8S_POD_INFRA_CONTAINER_ID=0af;K8S_POD_UID=u",
    "ns1",
    "pod1",
  ],
  ["K8S_POD_UID=u;K8S_POD_NAME=pod1;K8S_POD_NAMESPACE=ns1", "ns1", "pod1"],
  ["K8S_POD_NAMESPACE=ns1;K8S_POD_NAME=pod1;", "ns1", "pod1"],
  [";;K8S_POD_NAMESPACE=ns1;;K8S_POD_NAME=pod1;;", "ns1", "pod1"],
  ["A=b=c==;K8S_POD_NAMESPACE=ns1;K8S_POD_NAME=pod1;=;=x;FOO", "ns1", "pod1"],
  ["K8S_POD_NAMESPACE=ns1;K8S_POD_NAME=a=b", "ns1", "a=b"],
  [
    "IgnoreUnknown=no;K8S_POD_NAMESPACE=ns1;K8S_POD_NAME=pod1;MAC=00:00:5e:00:53:01;IP=10.0.0.2",
    "ns1",
    "pod1",
  ],
  ["IgnoreUnknown=1;K8S_POD_NAME=c3", "", "c3"],
  ["k8s_pod_namespace=ns1;k8s_pod_name=pod1", "", ""],
  ["K8S_POD_NAMESPACE;K8S_POD_NAME", "", ""],
  ["", "", ""],
];

test.concurrent.for(pods)(
  "DEL takes CNI_ARGS as they come when they are %j",
  async ([given, namespace, name], { scene }) => {
    const answer = await scene.call("DEL", scene.conf(), { env: { CNI_ARGS: given } });
    expect([answer.exitCode, answer.stdout]).toEqual([0, ""]);
    expect(commandLine(answer)).toEqual(lineOf("DEL", { namespace, name }, { execs: 0 }));
  },
);

test("ADD refuses a network name that no record's file can have, and does nothing", async ({
  scene,
}) => {
  const more = { env: { CNI_CONTAINERID: "a".repeat(64) } };
  const [fits, tooLong] = ["n".repeat(175), "n".repeat(176)];
  const { stdout } = await scene.call("ADD", scene.conf({ name: tooLong }), more);
  const details =
    "by 1 characters, for a file that is named after network, container and interface";
  expect(stdout).toBe(failure(7, "network name is too long", details));
  expect(scene.records()).toEqual([]);
  const found: unknown[] = [];
  for (const verb of ["ADD", "CHECK", "DEL"]) {
    found.push((await scene.call(verb, scene.conf({ name: fits }), more)).exitCode);
  }
  expect(found).toEqual([0, 0, 0]);
});

function lineOf(command: string, pod: object, told: object): object {
  const attachment = { containerId: "c1", ifName: "eth0" };
  return { level: "info", command, ...attachment, pod, ...told, msg: "done" };
}
