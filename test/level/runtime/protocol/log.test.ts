// The log: JSON lines on stderr and, if so wished, in a file, which many processes share and which does not grow for ever.
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { execaSync } from "execa";
import { expect } from "vitest";
import { kubeconfig } from "./api-listener.ts";
import { makeFakePath, refusing } from "./fake-path.ts";
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
  [
    "STATUS",
    ofNone,
    { ...done, level: "debug", ...none, backend: "nft", repeated: true, execs: 0 },
  ],
  ["ADD", ofAll, { ...done, ...one, ...nft, changed: ["ipv4"], execs: 1 }],
  ["ADD", ofAll, { ...done, ...one, ...nft, changed: [], execs: 1 }],
  ["CHECK", ofAll, { ...done, ...one, ...nft, execs: 1 }],
  ["GC", ofNone, { ...done, ...none, removed: 0, execs: 0 }],
  ["DEL", ofAll, { ...done, ...one, changed: ["ipv4"], execs: 2 }],
  ["DEL", ofAll, { ...done, ...one, execs: 0 }],
];

test("each command logs one line about itself, on stderr and in the file, when it is done", async ({
  scene,
}) => {
  const file = join(scene.dir, "log");
  let all = "";
  for (const [command, env, line] of calls) {
    const answer = await scene.call(
      command,
      scene.conf({ log_file: file, log_level: "debug", ...listed }),
      { env },
    );
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

type Place = { readonly path: string; readonly problem: string };

/** Files that lines must not go to: what is made, and what is said of it. `file` is a name in a directory of the test's own. */
const places: [when: string, make: (file: string) => Place][] = [
  ["is stdout", () => ({ path: "/dev/stdout", problem: "is a symbolic link" })],
  ["is a descriptor", () => ({ path: "/dev/fd/1", problem: "is a symbolic link" })],
  ["is a process's descriptor", () => link("/proc/self/fd/1")],
  ["is full", () => ({ path: "/dev/full", problem: "is not a regular file" })],
  [
    "is in no directory",
    () => ({ path: "/nonexistent/log", problem: "ENOENT: no such file or directory" }),
  ],
  [
    "is a directory",
    (file) => {
      mkdirSync(file);
      return { path: file, problem: "EISDIR: illegal operation on a directory" };
    },
  ],
  [
    "is a pipe that nobody reads",
    (file) => {
      execaSync("mkfifo", [file]);
      return { path: file, problem: "is not a regular file" };
    },
  ],
  [
    "is a link to a file",
    (file) => {
      writeFileSync(`${file}.target`, "");
      symlinkSync(`${file}.target`, file);
      return link(file);
    },
  ],
  [
    "is a link to nothing",
    (file) => {
      symlinkSync(`${file}.target`, file);
      return link(file);
    },
  ],
  [
    "has another name",
    (file) => {
      writeFileSync(`${file}.target`, "", { mode: 0o600 });
      linkSync(`${file}.target`, file);
      return { path: file, problem: "has other names too (hard links)" };
    },
  ],
  [
    "is another user's",
    (file) => {
      writeFileSync(file, "", { mode: 0o600 });
      chownSync(file, 65_534, 0);
      return { path: file, problem: "belongs to user 65534" };
    },
  ],
  ...[0o620, 0o602].map((mode): [string, (file: string) => Place] => [
    `can be written by others (${mode.toString(8)})`,
    (file) => {
      writeFileSync(file, "");
      chmodSync(file, mode);
      return { path: file, problem: "can be written by others" };
    },
  ]),
];

function link(path: string): Place {
  return { path, problem: "is a symbolic link" };
}

test.concurrent.for(places)(
  "a command succeeds, says so once and writes nothing there, when its log file %s",
  async ([, make], { scene }) => {
    const { path, problem } = make(join(scene.dir, "log"));
    const before = contentsIn(scene);
    const conf = scene.conf({ log_file: path });
    for (const [verb, stdout] of [
      ["ADD", JSON.stringify(prevResult)],
      ["STATUS", ""],
      ["DEL", ""],
    ] as const) {
      const answer = await scene.call(verb, conf);
      expect([answer.exitCode, answer.stdout]).toEqual([0, stdout]);
      const [first, ...rest] = linesOf(answer.stderr);
      expect(first).toMatchObject({
        level: "warn",
        log_file: path,
        err: { message: expect.stringContaining(problem) },
        msg: "the log file cannot be used: what is said goes to stderr alone",
      });
      expect(rest.filter(({ level }) => level === "warn")).toEqual([]);
    }
    expect(contentsIn(scene)).toEqual(before);
  },
);

test.concurrent.for(["stdout", "x/y.log", "./log", "../log"])(
  "a log file must be named by an absolute path, which %s is not",
  async (path, { scene }) => {
    const inDir: Program = [
      "bash",
      "--norc",
      "-c",
      'cd "$DIR"; exec "$@"',
      "bash",
      ...forms.executable,
    ];
    const more = { program: inDir, env: { DIR: scene.dir } };
    mkdirSync(join(scene.dir, "x"));
    const before = contentsIn(scene);
    const { exitCode, stdout } = await scene.call("ADD", scene.conf({ log_file: path }), more);
    const text = `invalid conf: log_file: expected an absolute path, found "${path}"`;
    expect([exitCode, stdout]).toEqual([1, failure(7, text)]);
    const del = await scene.call("DEL", scene.conf({ log_file: path }), more);
    expect([del.exitCode, del.stdout]).toEqual([0, ""]);
    expect(contentsIn(scene)).toEqual(before);
  },
);

/** The regular files of the scene, but its state, with what is in them. */
function contentsIn({ dir }: Scene): object {
  const names = readdirSync(dir).filter((name) => name !== "state");
  return Object.fromEntries(
    names
      .toSorted()
      .map((name) => [
        name,
        statSync(join(dir, name), { throwIfNoEntry: false })?.isFile()
          ? readFileSync(join(dir, name), "utf8")
          : "",
      ]),
  );
}

test("a line of the log is bounded, and still one JSON object with what counts", async ({
  scene,
}) => {
  const file = join(scene.dir, "log");
  const many = Object.fromEntries(ids.map((id) => [`${id}-${"\u0001\u20ac".repeat(400)}`, 1]));
  const { stderr } = await scene.call("ADD", scene.conf({ log_file: file, ...many }));
  const lines = stderr.split("\n").filter((line) => line !== "");
  expect(lines.map((line) => Buffer.byteLength(line) < 8_192)).toEqual([true, true]);
  expect(linesOf(stderr)).toMatchObject([
    { level: "warn", msg: "the conf has keys that nobody reads" },
    { level: "info", command: "ADD", msg: "done" },
  ]);
  expect(readFileSync(file, "utf8")).toBe(stderr);
});

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

test("the log file is turned over when the clock was set back since somebody was at it", async ({
  scene,
}) => {
  const file = join(scene.dir, "log");
  writeFileSync(file, "x".repeat(11_000_000), { mode: 0o600 });
  mkdirSync(`${file}.turn`);
  execaSync("touch", ["-d", "next week", `${file}.turn`]);
  await scene.call("DEL", scene.conf({ log_file: file }));
  expect(logsIn(scene)).toEqual(["log", "log.1"]);
});

test("no line is lost when the log file cannot be turned over", async ({ scene }) => {
  const file = join(scene.dir, "log");
  const before = `${"x".repeat(11_000_000)}\n`;
  writeFileSync(file, before, { mode: 0o600 });
  writeFileSync(`${file}.turn`, "somebody else's");
  execaSync("touch", ["-d", "1 minute ago", `${file}.turn`]);
  const { stderr } = await scene.call("DEL", scene.conf({ log_file: file }));
  expect(readFileSync(file, "utf8").slice(before.length)).toBe(stderr);
  expect(logsIn(scene)).toEqual(["log", "log.turn"]);
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
