// What is special about the artifacts: a program started from a snapshot must be of the call and not of the build, must hold
// nothing of the builder, and must start and load no more than it needs.
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { execa, execaSync } from "execa";
import { test as base, describe, expect } from "vitest";
import about from "../../../package.json" with { type: "json" };
import { countStarted, straceArgv } from "../../bench/strace.ts";
import { bundle, executable, node, root } from "../../lab/plugin.ts";
import { addressOf, confOf, test as netnsTest } from "../netns/level.ts";

const test = base.extend("dir", ({ skip: _ }, { onCleanup }): string => {
  const dir = mkdtempSync(join(tmpdir(), "slc-executable-"));
  onCleanup(() => rmSync(dir, { recursive: true }));
  return dir;
});

const forms = [
  ["executable", [executable]],
  ["bundle", [node, bundle]],
] as const;

/** Environment of a call; PATH has no Node in it. */
const cni = (command: string, netns = "/run/netns/none") => ({
  PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
  CNI_COMMAND: command,
  CNI_CONTAINERID: "c1",
  CNI_NETNS: netns,
  CNI_IFNAME: "eth0",
  CNI_PATH: "/opt/cni/bin",
});

const dual = [addressOf.ipv4, addressOf.ipv6];
const ipv6On = { "incoming-proxy-port": 4143, "outgoing-proxy-port": 4140, "proxy-uid": 2102 };

function confIn(stateDir: string, addresses = [addressOf.ipv4]): string {
  const linkerd = { ...ipv6On, "iptables-mode": "nft", ipv6: addresses.length > 1 };
  return JSON.stringify(confOf({ linkerd, addresses, sluice: { "state-dir": stateDir } }));
}

describe.for(forms)("the %s", ([, [file, ...args]]) => {
  test("says what it is when it is called by hand", () => {
    const answer = execaSync(file, args, { env: {}, extendEnv: false });
    expect(answer.stdout).toBe("");
    expect(answer.stderr).toBe(
      `CNI plugin sluice ${about.version}\nCNI protocol versions supported: 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0`,
    );
  });

  test("logs the process, the time and the names of the call", async ({ dir }) => {
    const before = Date.now();
    const env = { ...cni("DEL"), HOME: "/nowhere", TZ: "Pacific/Kiritimati" };
    const call = execa(file, args, { env, extendEnv: false, input: confIn(dir) });
    const { stderr } = await call;
    const line: Record<string, unknown> = JSON.parse(stderr);
    expect(line).toMatchObject({ pid: call.pid, containerId: "c1", msg: "done" });
    expect(line).not.toHaveProperty("hostname");
    const time = Date.parse(String(line["time"]));
    expect(time).toBeGreaterThanOrEqual(before);
    expect(time).toBeLessThanOrEqual(Date.now());
    expect(line["time"]).toMatch(/Z$/);
  });

  test("is the same from whatever directory, also from one that is gone", ({ dir }) => {
    const cwd = join(dir, "cwd");
    mkdirSync(cwd);
    const leave = 'cd "$1" && rmdir "$1" && shift && exec "$@"';
    const call = ["-c", leave, "sh", cwd, file, ...args];
    const answer = execaSync("/bin/sh", call, { env: cni("VERSION"), extendEnv: false });
    expect(JSON.parse(answer.stdout)).toMatchObject({ supportedVersions: expect.any(Array) });
  });

  netnsTest("looks for programs along the PATH of the call", ({ attachment }) => {
    const { stateDir, netns } = attachment;
    const fake = join(stateDir, "timeout");
    writeFileSync(fake, "#!/bin/sh\necho found on the PATH >&2\nexit 3\n");
    chmodSync(fake, 0o755);
    const answer = execaSync(file, args, {
      env: { ...cni("ADD", netns.path), PATH: `${stateDir}:/usr/bin` },
      extendEnv: false,
      input: confIn(stateDir),
      reject: false,
    });
    expect(JSON.parse(answer.stdout)).toMatchObject({
      msg: expect.stringContaining("exit status 3: found on the PATH"),
    });
  });

  netnsTest.for([
    { families: "ipv4", addresses: [addressOf.ipv4], most: { children: 1, all: 4 } },
    { families: "dual", addresses: dual, most: { children: 1, all: 7 } },
  ])("a new $families pod costs few processes", ({ addresses, most }, { attachment }) => {
    const { stateDir, netns } = attachment;
    const env = cni("ADD", netns.path);
    const conf = confIn(stateDir, addresses);
    expect(started([file, ...args], env, { stateDir, conf })).toEqual(most);
  });

  test.for(["DEL", "VERSION", "GC"])("%s without a record starts nothing", (command, { dir }) => {
    const started0 = started([file, ...args], cni(command), { stateDir: dir, conf: confIn(dir) });
    expect(started0).toEqual({ children: 0, all: 0 });
  });
});

type Given = { readonly stateDir: string; readonly conf: string };

function started(argv: readonly string[], env: Record<string, string>, given: Given) {
  const trace = join(given.stateDir, "trace");
  const [strace, ...options] = straceArgv(trace);
  const answer = execaSync(strace, [...options, ...argv], {
    env,
    extendEnv: false,
    input: given.conf,
    reject: false,
  });
  expect({ exitCode: answer.exitCode, stdout: answer.stdout }).toMatchObject({ exitCode: 0 });
  return countStarted(readFileSync(trace, "utf8"));
}

describe("the executable", () => {
  test("takes no options from NODE_OPTIONS, which are for other programs", () => {
    const env = { ...cni("VERSION"), NODE_OPTIONS: "--no-such-option --require /none.js" };
    expect(execaSync(executable, [], { env, extendEnv: false }).stderr).toBe("");
  });

  // A limit of processes can keep Node's own start waiting, before any of the program.
  test("has an end, whatever keeps it waiting", ({ dir }) => {
    const trace = join(dir, "trace");
    const options = ["-f", "-e", "trace=setitimer,execve", "-o", trace];
    execaSync("strace", [...options, executable], { env: cni("VERSION"), extendEnv: false });
    const calls = readFileSync(trace, "utf8").match(/(?<=^\d+ +)\w+\(.*(?=\))/gm) ?? [];
    expect(calls.slice(1)).toEqual([
      "setitimer(ITIMER_REAL, {it_interval={tv_sec=0, tv_usec=0}, it_value={tv_sec=120, tv_usec=0}}, NULL",
    ]);
  });

  test("takes no options from its arguments", () => {
    const options = ["--version", "--eval", "1"];
    const answer = execaSync(executable, options, { env: cni("VERSION"), extendEnv: false });
    expect(JSON.parse(answer.stdout)).toMatchObject({ cniVersion: "1.1.0" });
  });

  // What is in the pinned Node itself is not of the builder.
  test("holds nothing of the machine that built it", () => {
    const text = readFileSync(executable);
    const own = readFileSync(join(root, `node_modules/node-linux-${process.arch}/bin/node`));
    const traces = [root, "dist/.build-", ...environmentValues()];
    expect(traces.filter((trace) => text.includes(trace) && !own.includes(trace))).toEqual([]);
  });
});

describe("the bundle", () => {
  test("holds nothing of the machine that built it", () => {
    const text = readFileSync(bundle, "utf8");
    expect([root, ...environmentValues()].filter((it) => text.includes(it))).toEqual([]);
  });

  test("is the same text wherever it is built", async ({ dir }) => {
    const built = await Promise.all(["here", "there/deep"].map((name) => buildIn(join(dir, name))));
    expect(built[0]).toBe(built[1]);
    expect(built[0]?.length).toBeGreaterThan(100_000);
  });

  netnsTest("an ADD that knows the pod loads nothing for the API", ({ attachment }) => {
    const { stateDir, netns } = attachment;
    const list = join(stateDir, "modules");
    const hook = join(stateDir, "hook.cjs");
    const write = `require("fs").writeFileSync(${JSON.stringify(list)}, process.moduleLoadList.join("\\n"))`;
    writeFileSync(hook, `process.on("exit", () => ${write});`);
    const env = cni("ADD", netns.path);
    execaSync(node, ["--require", hook, bundle], {
      env,
      extendEnv: false,
      input: confIn(stateDir),
    });
    const modules = readFileSync(list, "utf8").split("\n");
    expect(modules).toContain("NativeModule child_process");
    expect(modules.filter((name) => / (?:https?|tls|crypto|internal\/tls.*)$/.test(name))).toEqual(
      [],
    );
  });
});

// Short ones may be in any text (a machine may be called "vm"), and PATH's parts are in ours.
function environmentValues(): string[] {
  const values = Object.entries(process.env).flatMap(([name, value = ""]) =>
    name === "PATH" ? [] : [value],
  );
  return [hostname(), ...values].filter((value) => value.length >= 8 && !/^[\d.]+$/.test(value));
}

/** Builds the bundle in a copy of the project, and gives its text. */
async function buildIn(dir: string): Promise<string> {
  for (const part of ["src", "build", "package.json", "tsconfig.json"]) {
    cpSync(join(root, part), join(dir, part), { recursive: true });
  }
  for (const name of packagesOf(readFileSync(bundle, "utf8"))) {
    const path = join("node_modules", name);
    cpSync(join(root, path), join(dir, path), { recursive: true });
  }
  const script = 'import { bundle } from "./build/bundle.ts"; await bundle();';
  await execa(node, ["--input-type=module", "--eval", script], { cwd: dir });
  return readFileSync(join(dir, "dist/sluice.cjs"), "utf8");
}

// The bundler writes before each part which file it comes from.
function packagesOf(text: string): string[] {
  const found = [...text.matchAll(/^\s*\/\/ node_modules\/((?:@[^/]+\/)?[^/]+)/gm)];
  return ["esbuild", "@esbuild", ...new Set(found.flatMap(([, name]) => name ?? []))];
}
