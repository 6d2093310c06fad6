// The process as runtimes start it: with variables, descriptors and a umask of their own, or without.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { node } from "../../../lab/plugin.ts";
import { savedNat } from "../../../lab/pod-nat.ts";
import { failure, forms, linesOf, type Program, prevResult, type Scene, test } from "./scene.ts";

const result = JSON.stringify(prevResult);

/** Variables that are honoured by Node, by the dynamic linker, or by libraries, and are meant for other programs. */
const variables: [name: string, env: Readonly<Record<string, string | undefined>>][] = [
  ["no PATH", { PATH: undefined }],
  ["an empty PATH", { PATH: "" }],
  ["a PATH of nothing", { PATH: "/nonexistent:relative:" }],
  ["NODE_OPTIONS that Node does not know", { NODE_OPTIONS: "--no-such-option" }],
  ["NODE_OPTIONS that load a file", { NODE_OPTIONS: "--require /nonexistent.js" }],
  ["NODE_EXTRA_CA_CERTS that is not there", { NODE_EXTRA_CA_CERTS: "/nonexistent.pem" }],
  ["NODE_EXTRA_CA_CERTS that is no certificate", { NODE_EXTRA_CA_CERTS: "/etc/hostname" }],
  ["SSL and OpenSSL files that are not there", { SSL_CERT_FILE: "/x", OPENSSL_CONF: "/x" }],
  ["NODE_DEBUG", { NODE_DEBUG: "fs,child_process", NODE_DEBUG_NATIVE: "x" }],
  ["NODE_CHANNEL_FD", { NODE_CHANNEL_FD: "3" }],
  ["NODE_PENDING_DEPRECATION", { NODE_PENDING_DEPRECATION: "1", NODE_NO_WARNINGS: "0" }],
  ["NODE_TLS_REJECT_UNAUTHORIZED", { NODE_TLS_REJECT_UNAUTHORIZED: "0" }],
  ["containerd's LD_LIBRARY_PATH", { LD_LIBRARY_PATH: "/opt/containerd/lib:" }],
  ["a locale and a time zone", { LC_ALL: "tr_TR.UTF-8", LANG: "C", TZ: "Asia/Tokyo" }],
  ["a HOME that is not there", { HOME: "/nonexistent", TMPDIR: "/nonexistent" }],
  ["libcni's tracing", { TRACEPARENT: "00-0af7651916cd43dd-b7ad6b71-01", BAGGAGE: "a=b" }],
  ["FORCE_COLOR", { FORCE_COLOR: "3", NO_COLOR: "1" }],
  ["XTABLES_LOCKFILE and iptables' own", { XTABLES_LOCKFILE: "/x", XTABLES_LIBDIR: "/x" }],
];

test.concurrent.for(variables)(
  "ADD does what it does when there is %s",
  async ([, env], { scene }) => {
    const { exitCode, stdout, stderr } = await scene.call("ADD", scene.conf(), { env });
    expect([exitCode, stdout]).toEqual([0, result]);
    expect(linesOf(stderr).at(-1)).toMatchObject({ command: "ADD", msg: "done" });
    expect(savedNat(scene.pod)).toContain("PROXY_INIT_OUTPUT");
  },
);

/** Names that the pinned Node has in it, those that it acts on among them, and what its libraries act on. */
function namesOfNode(): string[] {
  const own = readFileSync(node, "latin1").match(/\bNODE_[A-Z][A-Z0-9_]+/g) ?? [];
  const proxies = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"];
  const libraries = [
    ...["OPENSSL_CONF", "OPENSSL_CONF_INCLUDE", "OPENSSL_MODULES", "OPENSSL_ENGINES"],
    ...["SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE", "ICU_DATA", "ICU_TIMEZONE_FILES_DIR"],
    ...["UV_THREADPOOL_SIZE", "UV_USE_IO_URING", "FORCE_COLOR", "NO_COLOR", "TZ", "LC_ALL"],
    ...["WATCH_REPORT_DEPENDENCIES", "JEST_WORKER_ID", "UNDICI_NO_WASM_SIMD", "TERM", "HOME"],
    ...["LANG", "LANGUAGE", "GCONV_PATH", "LOCPATH", "MALLOC_ARENA_MAX", "DEBUG"],
  ];
  const lower = proxies.map((name) => name.toLowerCase());
  return [...new Set([...own, ...proxies, ...lower, ...libraries])];
}

const verbs = ["VERSION", "STATUS", "ADD", "CHECK", "GC", "DEL", "FOO", ""];

/** What each verb answers and logs, of a good conf and of one that is none, and which files are there in the end. */
async function allAnswers(scene: Scene, env: Readonly<Record<string, string>>): Promise<unknown> {
  const answers: unknown[] = [];
  for (const verb of verbs) {
    for (const stdin of [scene.conf(), "{"]) {
      const { exitCode, stdout, stderr } = await scene.call(verb, stdin, { env });
      const said = verb === "" ? stderr : linesOf(stderr).map(({ msg, level }) => [level, msg]);
      answers.push([verb, exitCode, stdout, said]);
    }
  }
  return { answers, files: Object.keys(modesIn(scene)) };
}

test("no variable of Node's or its libraries' changes anything, in no verb", async ({ scene }) => {
  const names = namesOfNode();
  expect(names).toEqual(expect.arrayContaining(["NODE_OPTIONS", "NODE_USE_SYSTEM_CA"]));
  // Once before: what a node is asked first, it says louder than what it has said already.
  await allAnswers(scene, {});
  const clean = await allAnswers(scene, {});
  const made = join(scene.dir, "made");
  const long = "a".repeat(1_000);
  for (const value of ["1", "0", "", "3", "x", "/nonexistent", made, "--no-such-option", long]) {
    const env = Object.fromEntries(names.map((name) => [name, value]));
    expect([value, await allAnswers(scene, env)]).toEqual([value, clean]);
  }
});

const fewFiles = {
  cniVersion: "1.1.0",
  code: 11,
  msg: "the process may open too few files at once: Node needs 32 to start, an ADD 64",
  details: "raise the limit of open files (LimitNOFILE, ulimit -n) of the container runtime",
};

test.concurrent.for(["4", "8", "12", "20", "31"])(
  "it is said that Node cannot start when %s descriptors are allowed",
  async (few, { scene }) => {
    const program = throughBash(`ulimit -n ${few}; exec "$@"`);
    for (const verb of ["ADD", "DEL", "VERSION"]) {
      const { exitCode, stdout, stderr } = await scene.call(verb, scene.conf(), { program });
      expect([exitCode, stdout, stderr]).toEqual([1, JSON.stringify(fewFiles), ""]);
    }
  },
);

test.concurrent.for(["32", "40"])(
  "each verb answers when only %s descriptors are allowed",
  async (few, { scene }) => {
    const program = throughBash(`ulimit -n ${few}; exec "$@"`);
    for (const verb of verbs) {
      const { exitCode, stdout } = await scene.call(verb, scene.conf(), { program });
      expect([0, 1]).toContain(exitCode);
      if (stdout !== "") expect(JSON.parse(stdout)).toMatchObject({ cniVersion: "1.1.0" });
    }
  },
);

const unheard: [when: string, script: string, status: number, said: string[]][] = [
  ["is full", 'exec "$@" >/dev/full', 1, ["the answer could not be written"]],
  [
    "has no reader",
    'exec 3> >(exec true); wait $!; exec "$@" >&3',
    1,
    ["the answer could not be written"],
  ],
  ["is closed", 'exec "$@" >&-', 0, []],
  ["is closed like all others", 'exec "$@" <&- >&- 2>&-', 0, []],
];

test.concurrent.for(unheard)(
  "the plugin ends as it should when stdout %s",
  async ([, script, status, said], { scene }) => {
    const program = throughBash(script);
    const { exitCode, stdout, stderr } = await scene.call("VERSION", "", { program });
    expect([exitCode, stdout]).toEqual([status, ""]);
    expect(linesOf(stderr).map(({ msg }) => msg)).toEqual(said);
  },
);

const starts: [when: string, script: string][] = [
  ["stderr is closed", 'exec "$@" 2>&-'],
  ["stderr is full", 'exec "$@" 2>/dev/full'],
  ["nobody reads stderr", 'exec "$@" 2> >(exec true >/dev/null)'],
  ["other descriptors are open", 'exec "$@" 3<. 4</etc/passwd 9>/dev/null 77<&0'],
  ["signals are ignored", 'trap "" PIPE CHLD HUP TERM; exec "$@"'],
  ["the working directory is /", 'cd / && exec "$@"'],
  ["the working directory is gone", 'mkdir "$DIR/a"; cd "$DIR/a"; rmdir "$DIR/a"; exec "$@"'],
  ["the process leads a session", 'exec setsid "$@"'],
  ["few descriptors are allowed", 'ulimit -n 64; exec "$@"'],
  [
    "it is a chain of links to the executable",
    'ln -s "$1" "$DIR/a"; ln -s a "$DIR/b"; exec "$DIR/b"',
  ],
];

test.concurrent.for(starts)("ADD does what it does when %s", async ([, script], { scene }) => {
  const more = { program: throughBash(script), env: { DIR: scene.dir } };
  const { exitCode, stdout } = await scene.call("ADD", scene.conf(), more);
  expect([exitCode, stdout]).toEqual([0, result]);
});

const inputs: [when: string, script: string, code: number, msg: string][] = [
  [
    "is closed",
    'exec "$@" <&-',
    6,
    "error unmarshall network config: Unexpected end of JSON input",
  ],
  [
    "is empty",
    'exec "$@" </dev/null',
    6,
    "error unmarshall network config: Unexpected end of JSON input",
  ],
  [
    "is a directory",
    'exec "$@" </',
    5,
    "error reading from stdin: EISDIR: illegal operation on a directory, read",
  ],
  [
    "can only be written",
    'exec "$@" 0>/dev/null',
    5,
    "error reading from stdin: EBADF: bad file descriptor, read",
  ],
];

test.concurrent.for(inputs)(
  "ADD fails and DEL does not when stdin %s",
  async ([, script, code, msg], { scene }) => {
    const program = throughBash(script);
    const add = await scene.call("ADD", "", { program });
    expect([add.exitCode, add.stdout]).toEqual([1, failure(code, msg)]);
    const del = await scene.call("DEL", "", { program });
    expect([del.exitCode, del.stdout]).toEqual([0, ""]);
  },
);

test("ADD fails when there is no stdout to answer on, and can be repeated", async ({ scene }) => {
  const { exitCode } = await scene.call("ADD", scene.conf(), {
    program: throughBash('exec "$@" >/dev/full'),
  });
  expect(exitCode).toBe(1);
  const again = await scene.call("ADD", scene.conf());
  expect([again.exitCode, again.stdout]).toEqual([0, result]);
});

test.concurrent.for(["0000", "0022", "0777"])(
  "what the plugin writes is for its user alone when the umask is %s",
  async (umask, { scene }) => {
    const program = throughBash(`umask ${umask}; exec "$@"`);
    const conf = scene.conf({ log_file: join(scene.dir, "log") });
    for (const verb of ["ADD", "STATUS"]) await scene.call(verb, conf, { program });
    const modes = modesIn(scene);
    // A umask of all bits takes those of the user too, who is root here.
    const [directory, file] = umask === "0777" ? ["0", "0"] : ["700", "600"];
    expect(modes).toEqual({
      log: file,
      state: directory,
      "state/attachments": directory,
      "state/attachments/lab,c1,eth0.json": file,
      "state/backend.json": file,
      "state/locks": directory,
    });
  },
);

function modesIn({ dir }: Scene): object {
  const names = readdirSync(dir, { recursive: true, encoding: "utf8" }).toSorted();
  const modeOf = (name: string) => (statSync(join(dir, name)).mode & 0o7777).toString(8);
  return Object.fromEntries(names.map((name) => [name, modeOf(name)]));
}

function throughBash(script: string): Program {
  // Where its stdin is a socket, bash takes itself for a remote shell, and reads its user's file.
  return ["bash", "--norc", "-c", script, "bash", ...forms.executable];
}
