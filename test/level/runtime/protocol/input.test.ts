// What runtimes send beside prevResult: keys that nobody asked for, annotations in all forms, CNI_ARGS as they come.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { expect } from "vitest";
import {
  commandLine,
  failure,
  forms,
  linesOf,
  linkerd,
  type Program,
  prevResult,
  type Scene,
  test,
} from "./scene.ts";

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

const mostBytes = 1_310_720;

/** A conf of so many bytes, most of them in prevResult. */
function confOfSize(scene: Scene, size: number): { conf: string; result: string } {
  const withFiller = (filler: string) => {
    const result = JSON.stringify({ ...prevResult, dns: { search: [filler] } });
    const conf = JSON.stringify({ ...scene.conf(), prevResult: 0 });
    return { conf: conf.replace('"prevResult":0', () => `"prevResult":${result}`), result };
  };
  return withFiller("x".repeat(size - withFiller("").conf.length));
}

const tooMuch = failure(
  6,
  "stdin holds more than 1310720 bytes",
  "a conf with its prevResult is some kilobytes long: see what the plugins before print",
);

/** How stdin comes: a pipe, as most runtimes make it, the socket of a program in Node, a file. */
const ways: Readonly<Record<string, string>> = {
  pipe: 'cat "$DIR/stdin" | { exec "$@"; }',
  socket: 'exec "$@"',
  file: 'exec "$@" <"$DIR/stdin"',
};

test.concurrent.for(Object.entries(ways))(
  "stdin is taken up to its bound, and nothing beyond, when it is a %s",
  async ([, script], { scene }) => {
    const call = async (verb: string, stdin: string) => {
      writeFileSync(join(scene.dir, "stdin"), stdin);
      const program: Program = ["bash", "--norc", "-c", script, "bash", ...forms.executable];
      const { exitCode, stdout } = await scene.call(verb, stdin, {
        program,
        env: { DIR: scene.dir },
      });
      return [exitCode, stdout];
    };
    const { conf, result } = confOfSize(scene, mostBytes);
    expect(await call("ADD", conf)).toEqual([0, result]);
    for (const more of [`${conf} `, conf.repeat(50)]) {
      expect(await call("ADD", more)).toEqual([1, tooMuch]);
      expect(await call("STATUS", more)).toEqual([1, tooMuch]);
      expect(await call("DEL", more)).toEqual([0, ""]);
    }
    expect(await call("DEL", conf)).toEqual([0, ""]);
  },
);

const tooLate = failure(
  11,
  "stdin was not closed in time",
  "the runtime has to write the conf to the plugin's stdin, and to close it",
);

/** The descriptor is open for writing as well, so there is always one who might write. */
const never = 'mkfifo "$DIR/in"; exec 0<>"$DIR/in"; printf %s "$WRITTEN" >"$DIR/in"; exec "$@"';

const unclosed: [verb: string, stdin: "pipe" | "socket", answer: unknown[]][] = [
  ["ADD", "pipe", [1, tooLate]],
  ["ADD", "socket", [1, tooLate]],
  ["DEL", "pipe", [0, ""]],
  ["DEL", "socket", [0, ""]],
];

// All wait for the same 20 seconds.
test.concurrent.for(unclosed)(
  "%s ends when stdin is a %s that is never closed",
  async ([verb, stdin, answer], { scene }) => {
    const conf = JSON.stringify(scene.conf());
    const more = { env: { DIR: scene.dir, WRITTEN: conf, PATH: process.env["PATH"] } };
    const program: Program = ["bash", "--norc", "-c", never, "bash", ...forms.executable];
    const { exitCode, stdout } =
      stdin === "socket"
        ? await callUnclosed(scene, verb, conf)
        : await scene.call(verb, "", { program, ...more });
    expect([exitCode, stdout]).toEqual(answer);
  },
);

async function callUnclosed(scene: Scene, verb: string, conf: string) {
  const [file, ...args] = forms.executable;
  const env = {
    CNI_COMMAND: verb,
    CNI_CONTAINERID: "c1",
    CNI_NETNS: scene.pod.path,
    CNI_IFNAME: "eth0",
    CNI_PATH: "/",
  };
  const call = execa(file, args, { env, extendEnv: false, reject: false });
  call.stdin.write(conf);
  return await call;
}

test.concurrent.for(["ADD", "CHECK", "GC", "STATUS", "DEL"])(
  "%s refuses a conf that is nested too deeply",
  async (verb, { scene }) => {
    const deep = "[".repeat(6_000) + "]".repeat(6_000);
    const text = "error unmarshall network config: the JSON is nested to more than 2500 levels";
    for (const key of ["prevResult", "linkerd", "runtimeConfig", "other"]) {
      const conf = JSON.stringify({ ...scene.conf(), [key]: "@" }).replace('"@"', deep);
      const { exitCode, stdout } = await scene.call(verb, conf);
      expect([exitCode, stdout]).toEqual(verb === "DEL" ? [0, ""] : [1, failure(6, text)]);
    }
  },
);

function lineOf(command: string, pod: object, told: object): object {
  const attachment = { containerId: "c1", ifName: "eth0" };
  return { level: "info", command, ...attachment, pod, ...told, msg: "done" };
}
