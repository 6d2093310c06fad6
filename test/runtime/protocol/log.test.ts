// The log: JSON lines on stderr and, if so wished, in a file, which many processes share and which does not grow for ever.
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execaSync } from "execa";
import { expect } from "vitest";
import { kubeconfig } from "./api-listener.ts";
import { makeFakePath, refusing } from "./fake-path.ts";
import { commandLine, forms, linesOf, linkerd, type Scene, test } from "./scene.ts";

const args = "K8S_POD_NAMESPACE=emoji;K8S_POD_NAME=web";
const pod = { namespace: "emoji", name: "web" };
const noPod = { namespace: "", name: "" };
const one = { containerId: "c1", ifName: "eth0", pod };
const none = { containerId: "", ifName: "", pod: noPod };
const ofAll = { CNI_ARGS: args };
const ofNone = { CNI_CONTAINERID: "", CNI_IFNAME: "", CNI_NETNS: "" };
const done = { level: "info", msg: "done" };
const nft = { families: ["ipv4"], backend: "nft" };

const listed = { "cni.dev/valid-attachments": [{ containerID: "c1", ifname: "eth0" }] };

/** Calls one after the other, and the line of each. */
const calls: [verb: string, env: Readonly<Record<string, string>>, line: object][] = [
  ["STATUS", ofNone, { ...done, ...none, backend: "nft", execs: 1 }],
  ["STATUS", ofNone, { ...done, ...none, backend: "nft", execs: 0 }],
  ["ADD", ofAll, { ...done, ...one, ...nft, changed: ["ipv4"], execs: 1 }],
  ["ADD", ofAll, { ...done, ...one, ...nft, changed: [], execs: 1 }],
  ["CHECK", ofAll, { ...done, ...one, ...nft, execs: 1 }],
  ["GC", ofNone, { ...done, ...none, removed: 0, execs: 0 }],
  ["DEL", ofAll, { ...done, ...one, changed: ["ipv4"], execs: 3 }],
  ["DEL", ofAll, { ...done, ...one, execs: 0 }],
];

test("each command logs one line about itself, on stderr and in the file, when it is done", async ({
  scene,
}) => {
  const file = join(scene.dir, "log");
  let all = "";
  for (const [command, env, line] of calls) {
    const answer = await scene.call(command, scene.conf({ log_file: file, ...listed }), { env });
    expect({ ...commandLine(answer) }).toEqual({ command, ...line });
    const [{ durationMs, time, pid } = {}] = linesOf(answer.stderr);
    expect([durationMs, time, pid].map((value) => typeof value)).toEqual([
      "number",
      "string",
      "number",
    ]);
    all += answer.stderr;
  }
  expect(readFileSync(file, "utf8")).toBe(all);
  expect((statSync(file).mode & 0o7777).toString(8)).toBe("600");
});

const failures: [
  when: string,
  env: Readonly<Record<string, string>>,
  conf: object,
  line: object,
][] = [
  ["the netns is gone", { CNI_NETNS: "/none" }, {}, { code: 3, execs: 0 }],
  ["the conf is wrong", {}, { linkerd: {} }, { code: 7, execs: 0 }],
  ["the conf has no name", {}, { name: "" }, { code: 7 }],
  ["the version is not spoken", {}, { cniVersion: "2.0.0" }, { code: 1 }],
];

test.concurrent.for(failures)(
  "a command logs one line about itself when %s",
  async ([, env, keys, line], { scene }) => {
    const answer = await scene.call("ADD", scene.conf(keys), { env: { CNI_ARGS: args, ...env } });
    const { code, msg, details = "" }: Record<string, unknown> = JSON.parse(answer.stdout);
    expect(commandLine(answer)).toEqual({
      level: "error",
      command: "ADD",
      ...one,
      code,
      msg,
      details,
      ...line,
    });
  },
);

const levels: [level: string, lines: number][] = [
  ["error", 0],
  ["warn", 1],
  ["info", 2],
  ["INFO", 2],
  ["debug", 2],
  ["nonsense", 2],
  ["silent", 0],
];

test.concurrent.for(levels)(
  "the log keeps to its level when it is %s",
  async ([level, lines], { scene }) => {
    const conf = scene.conf({ log_level: level, unknown: 1 });
    const { exitCode, stderr } = await scene.call("ADD", conf);
    expect([exitCode, linesOf(stderr).length]).toEqual([0, lines]);
  },
);

const files: [when: string, make: (file: string) => void][] = [
  ["is a directory", (file) => mkdirSync(file)],
  ["is a pipe that nobody reads", (file) => void execaSync("mkfifo", [file])],
  ["is in no directory", () => undefined],
  ["is full", () => undefined],
];

test.concurrent.for(files)(
  "a command succeeds when its log file %s",
  async ([when, make], { scene }) => {
    const places: Record<string, string> = {
      "is in no directory": "/nonexistent/log",
      "is full": "/dev/full",
    };
    const file = places[when] ?? join(scene.dir, "log");
    make(file);
    const { exitCode, stderr } = await scene.call("ADD", scene.conf({ log_file: file }));
    expect([exitCode, linesOf(stderr).at(-1)?.["msg"]]).toEqual([0, "done"]);
  },
);

const ids = Array.from({ length: 50 }, (_, i) => `c${String(i).padStart(2, "0")}`);

test("the log file holds whole lines of all when 50 processes write at once", async ({ scene }) => {
  const file = join(scene.dir, "log");
  await logAtOnce(scene, file);
  expect(idsIn(file)).toEqual(ids);
});

test("the log file is turned over once when 50 processes find it full", async ({ scene }) => {
  const file = join(scene.dir, "log");
  const before = `${JSON.stringify({ filler: "x".repeat(1_000) })}\n`.repeat(10_500);
  writeFileSync(file, before);
  await logAtOnce(scene, file);
  const old = readFileSync(`${file}.1`, "utf8");
  expect(old.startsWith(before)).toBe(true);
  writeFileSync(`${file}.1`, old.slice(before.length));
  expect([...idsIn(file), ...idsIn(`${file}.1`)].toSorted()).toEqual(ids);
  expect(logsIn(scene)).toEqual(["log", "log.1"]);
  expect(statSync(file).size).toBeLessThan(50_000);
});

test("the log file is turned over when whoever was at it is gone", async ({ scene }) => {
  const file = join(scene.dir, "log");
  writeFileSync(file, "x".repeat(11_000_000));
  mkdirSync(`${file}.turn`);
  const conf = scene.conf({ log_file: file });
  await scene.call("DEL", conf);
  expect(existsSync(`${file}.1`)).toBe(false);
  execaSync("touch", ["-d", "1 minute ago", `${file}.turn`]);
  await scene.call("DEL", conf);
  expect(logsIn(scene)).toEqual(["log", "log.1"]);
});

const jwt = `eyJhbGciOiJSUzI1NiJ9.${"a".repeat(40)}.${"b-_9".repeat(20)}`;
const opaque = "k8s-opaque-0123456789";
const meshed = { "linkerd.io/proxy-version": "1" };
const withAnnotation = (value: string) => ({
  kubernetes: {},
  runtimeConfig: {
    "io.kubernetes.cri.pod-annotations": { ...meshed, "config.linkerd.io/inbound-port": value },
  },
});

/** Ways in which a token may find its way into what is said. */
const leaks: [where: string, keys: object, env?: Readonly<Record<string, string>>][] = [
  ["an annotation", withAnnotation(jwt)],
  ["an annotation, as a header", withAnnotation(`Authorization: Bearer ${opaque}`)],
  ["an annotation, in JSON", withAnnotation(`{"token":"${opaque}"}`)],
  ["a pod's name", {}, { CNI_ARGS: `K8S_POD_NAMESPACE=ns;K8S_POD_NAME=${jwt}` }],
  ["a value of the conf", { linkerd: { ...linkerd, "proxy-uid": jwt } }],
  ["a value of the conf, as an object", { log_level: { k8s_auth_token: opaque } }],
  ["a key of the conf", { [jwt]: 1 }],
  ["the network's name", { name: `${jwt} ` }],
  [
    "a kubeconfig that cannot be parsed",
    { kubernetes: { kubeconfig: "@/broken" } },
    { CNI_ARGS: args },
  ],
  [
    "a kubeconfig that lacks something",
    { kubernetes: { kubeconfig: "@/partial" } },
    { CNI_ARGS: args },
  ],
  [
    "a kubeconfig whose server refuses",
    {
      kubernetes: { kubeconfig: "@/refused" },
      sluice: { "state-dir": "@/state", "timeout-seconds": 4 },
    },
    { CNI_ARGS: args },
  ],
  ["a tool's message", {}],
];

test.concurrent.for(leaks)(
  "no token is said when it is in %s",
  async ([where, keys, env = {}], { scene }) => {
    const kubeconfigs: Record<string, string> = {
      broken: `users:\n- name: u\n  user:\n    token: "${opaque}\nclusters: [`,
      partial: `users:\n- name: u\n  user:\n    token: ${opaque}\n    tokenFile: [${jwt}]`,
      refused: kubeconfig(1, opaque),
    };
    for (const [name, text] of Object.entries(kubeconfigs))
      writeFileSync(join(scene.dir, name), text);
    const fakes = makeFakePath(scene);
    if (where.includes("tool")) fakes.put("iptables-nft-restore", `echo '${jwt}' >&2; ${refusing}`);
    const file = join(scene.dir, "log");
    const conf = JSON.stringify({ ...scene.conf(), log_level: "debug", log_file: file, ...keys });
    const answer = await scene.call("ADD", conf.replaceAll("@", scene.dir), {
      env: { PATH: fakes.path, ...env },
    });
    const said =
      answer.stdout + answer.stderr + (existsSync(file) ? readFileSync(file, "utf8") : "");
    expect(said).not.toBe("");
    expect([jwt, jwt.slice(22), opaque].filter((secret) => said.includes(secret))).toEqual([]);
  },
);

async function logAtOnce(scene: Scene, file: string): Promise<void> {
  const conf = scene.conf({ log_file: file });
  await Promise.all(
    ids.map((id) => {
      const more = { env: { CNI_CONTAINERID: id }, program: forms.executable };
      return scene.call("DEL", conf, more);
    }),
  );
}

function idsIn(file: string): unknown[] {
  return linesOf(readFileSync(file, "utf8"))
    .map(({ containerId }) => containerId)
    .toSorted();
}

function logsIn({ dir }: Scene): string[] {
  return readdirSync(dir)
    .filter((name) => name.startsWith("log"))
    .toSorted();
}
