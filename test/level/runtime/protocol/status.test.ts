// STATUS: can ADD work here? Asked every five seconds by containerd, so it starts nothing where nothing has changed.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { kubeconfig, listenAsApi } from "./api-listener.ts";
import { honest, makeFakePath, refusing } from "./fake-path.ts";
import {
  commandLine,
  failure,
  forms,
  linesOf,
  linkerd,
  type Program,
  type Scene,
  test,
} from "./scene.ts";

/** What STATUS has said before it says again at this level only. */
const telling = { log_level: "debug" };

const modes = ["auto", "nft", "legacy", "plain"];

test.concurrent.for(modes)(
  "STATUS starts no child when it has answered before and the mode is %s",
  async (mode, { scene }) => {
    const own = { ...linkerd, "iptables-mode": mode, ipv6: true };
    const conf = scene.conf({ linkerd: own, ...telling });
    const execs = await execsOf(scene, conf, ["STATUS", "STATUS", "STATUS"]);
    expect(execs).toEqual([expect.any(Number), 0, 0]);
    expect(execs[0]).toBeGreaterThan(0);
  },
);

test("STATUS starts no child when an ADD has shown that the backend works", async ({ scene }) => {
  const conf = scene.conf(telling);
  await scene.call("ADD", conf);
  expect(await execsOf(scene, conf, ["STATUS", "STATUS"])).toEqual([0, 0]);
});

test("STATUS starts no child when two confs ask in turn", async ({ scene }) => {
  const confs = ["nft", "legacy"].map((mode) =>
    scene.conf({ linkerd: { ...linkerd, "iptables-mode": mode }, ...telling }),
  );
  for (const conf of confs) await scene.call("STATUS", conf);
  for (const conf of confs) expect(await execsOf(scene, conf, ["STATUS"])).toEqual([0]);
});

test("STATUS makes no process, no netns and no connection when nothing has changed", async ({
  scene,
}) => {
  const api = await listenAsApi();
  const file = join(scene.dir, "kubeconfig");
  writeFileSync(file, kubeconfig(api.port));
  const conf = scene.conf({ kubernetes: { kubeconfig: file } });
  await scene.call("STATUS", conf);
  const trace = join(scene.dir, "trace");
  const calls = "execve,fork,vfork,clone,clone3,unshare,setns,connect";
  const program: Program = [
    "strace",
    "-f",
    "-o",
    trace,
    "-e",
    `trace=${calls}`,
    ...forms.executable,
  ];
  const { exitCode, stdout } = await scene.call("STATUS", conf, { program });
  expect([exitCode, stdout]).toEqual([0, ""]);
  const seen = readFileSync(trace, "utf8").split("\n");
  // Threads are clones too; what is left is the one execve by which strace starts the plugin.
  const processes = seen.filter((line) => /\w+\(/.test(line) && !line.includes("CLONE_THREAD"));
  expect(processes.map((line) => line.replace(/^\d+ +(\w+)\(.*/, "$1"))).toEqual(["execve"]);
  expect(api.connections()).toBe(0);
  api.close();
});

test("STATUS looks again when a program is another than before", async ({ scene }) => {
  const fakes = makeFakePath(scene);
  const more = { env: { PATH: fakes.path } };
  const found: (number | undefined)[] = [];
  for (const script of [honest, refusing, honest]) {
    fakes.put("iptables-nft-restore", script);
    found.push((await scene.call("STATUS", scene.conf(), more)).exitCode);
  }
  expect(found).toEqual([0, 1, 0]);
});

test("STATUS warns of a kubeconfig that some pods need, and looks again when it is another", async ({
  scene,
}) => {
  const file = join(scene.dir, "kubeconfig");
  const conf = scene.conf({ kubernetes: { kubeconfig: file } });
  const found: unknown[] = [];
  const ask = async () => {
    const answer = await scene.call("STATUS", conf);
    expect([answer.exitCode, answer.stdout]).toEqual([0, ""]);
    found.push(linesOf(answer.stderr).map(({ level }) => level));
  };
  for (const text of [kubeconfig(1), "", ""]) {
    writeFileSync(file, text);
    await ask();
  }
  // Nothing is written, so that it is the same file as before.
  await ask();
  rmSync(file);
  await ask();
  expect(found).toEqual([["info"], ["warn", "info"], ["warn", "info"], [], ["warn", "info"]]);
});

test("STATUS does not ask the same backend twice when it has just refused", async ({ scene }) => {
  const fakes = makeFakePath(scene);
  fakes.put("iptables-nft-restore", refusing);
  const more = { env: { PATH: fakes.path } };
  const conf = scene.conf(telling);
  const [first, second] = [
    await scene.call("STATUS", conf, more),
    await scene.call("STATUS", conf, more),
  ];
  expect(second.stdout).toBe(first.stdout);
  expect(commandLine(second)).toMatchObject({ level: "debug", code: 50, execs: 0 });
});

/** Faults of one family's programs, with IPv6 on: whether any pod can still be served. */
const families: [when: string, prefixes: string[], exitCode: number, said: string[]][] = [
  ["ip6tables refuses", ["ip6tables"], 0, ["pods that have ipv6 cannot be served"]],
  ["iptables refuses", ["iptables"], 0, ["pods that have ipv4 cannot be served"]],
  ["both refuse", ["iptables", "ip6tables"], 1, []],
];

test.concurrent.for(families)(
  "STATUS says no only where no pod can be served: %s",
  async ([, prefixes, exitCode, said], { scene }) => {
    const fakes = makeFakePath(scene);
    for (const prefix of prefixes) fakes.put(`${prefix}-nft-restore`, refusing);
    const conf = scene.conf({ linkerd: { ...linkerd, ipv6: true } });
    const more = { env: { PATH: fakes.path } };

    const answer = await scene.call("STATUS", conf, more);

    expect(answer.exitCode).toBe(exitCode);
    const warnings = linesOf(answer.stderr).filter(({ level }) => level === "warn");
    expect(warnings.map(({ msg }) => msg)).toEqual(said.map((one) => expect.stringMatching(one)));
  },
);

test("STATUS does not take an ADD's IPv4 rules for a proof of IPv6", async ({ scene }) => {
  const fakes = makeFakePath(scene);
  fakes.put("ip6tables-nft-restore", refusing);
  const more = { env: { PATH: fakes.path } };
  const conf = scene.conf({ linkerd: { ...linkerd, ipv6: true } });
  expect((await scene.call("ADD", conf, more)).exitCode).toBe(0);

  const answer = await scene.call("STATUS", conf, more);

  const [warning] = linesOf(answer.stderr);
  expect(warning).toMatchObject({ level: "warn", msg: expect.stringMatching("have ipv6 cannot") });
});

test("STATUS warns of values that pods with a proxy fail for, and serves the others", async ({
  scene,
}) => {
  const conf = scene.conf({ linkerd: { ...linkerd, "inbound-ports-to-ignore": ["http"] } });

  const answer = await scene.call("STATUS", conf);

  expect([answer.exitCode, answer.stdout]).toEqual([0, ""]);
  expect(linesOf(answer.stderr)[0]).toMatchObject({
    level: "warn",
    msg: expect.stringMatching("pods that have a proxy cannot be served: .*http"),
  });
});

test("STATUS answers in the conf's time when a program hangs", async ({ scene }) => {
  const fakes = makeFakePath(scene);
  fakes.put("iptables-nft-restore", "sleep 30");
  const conf = scene.conf({ sluice: { "state-dir": scene.stateDir, "timeout-seconds": 1 } });
  const began = performance.now();
  const { stdout } = await scene.call("STATUS", conf, { env: { PATH: fakes.path } });
  expect(JSON.parse(stdout)).toMatchObject({ code: 50 });
  expect(performance.now() - began).toBeLessThan(6_000);
});

/** A node that lacks something: how the plugin is run on it, and what is in its conf. */
type Lack = {
  readonly name: string;
  readonly script?: string;
  readonly sluice?: Readonly<Record<string, string>>;
  readonly mode?: string;
  readonly problem: string;
};

const hide = (what: string) => `mount --bind /dev/null ${what}`;
const noTools = "mount -t tmpfs none /usr/sbin";
const adviseTools = "install iptables 1.8 or later, or set linkerd.iptables-mode to what is there";
const lacks: readonly Lack[] = [
  {
    name: "the state directory is below a file",
    sluice: { "state-dir": "@/file/state" },
    problem: "ENOTDIR: not a directory, mkdir '@/file/state'",
  },
  {
    name: "the state directory is on a read-only mount",
    script: 'mount --bind "$1/ro" "$1/ro" && mount -o remount,bind,ro "$1/ro"',
    sluice: { "state-dir": "@/ro" },
    problem: "EROFS: read-only file system, mkdir '@/ro/attachments'",
  },
  {
    name: "nsenter is not there",
    script: hide("/usr/bin/nsenter"),
    problem: "nsenter is not on the node; install util-linux",
  },
  {
    name: "iptables is not there",
    script: noTools,
    problem: `no iptables programs of backend nft for ipv4 on the node (${adviseTools})`,
  },
  {
    name: "plain iptables is not there",
    script: noTools,
    mode: "plain",
    problem: `no iptables programs under the plain names for ipv4 on the node (${adviseTools})`,
  },
];

test.concurrent.for(lacks)("STATUS says what is missing when $name", async (lack, { scene }) => {
  writeFileSync(join(scene.dir, "file"), "");
  mkdirSync(join(scene.dir, "ro"));
  const here = (text: string) => text.replaceAll("@", scene.dir);
  const stateDir = here(lack.sluice?.["state-dir"] ?? "@/state");
  const conf = scene.conf({
    linkerd: { ...linkerd, "iptables-mode": lack.mode ?? "nft" },
    sluice: { "state-dir": stateDir },
  });
  const script = `${lack.script ?? ":"}; shift; exec "$@"`;
  const program: Program = [
    "unshare",
    "-m",
    "sh",
    "-c",
    script,
    "sh",
    scene.dir,
    ...forms.executable,
  ];
  const { exitCode, stdout } = await scene.call("STATUS", conf, { program });
  expect([exitCode, stdout]).toEqual([
    1,
    failure(50, `sluice cannot work on this node: ${here(lack.problem)}`),
  ]);
});

test("STATUS says what the backend said when it refuses", async ({ scene }) => {
  const fakes = makeFakePath(scene);
  fakes.put("iptables-nft-restore", refusing);
  const { stdout } = await scene.call("STATUS", scene.conf(), { env: { PATH: fakes.path } });
  const tool = `${fakes.dir}/iptables-nft-restore (nft, ipv4, table nat)`;
  expect(JSON.parse(stdout).msg).toContain(`${tool} failed: oh no`);
});

async function execsOf(scene: Scene, conf: object, verbs: readonly string[]): Promise<unknown[]> {
  const found: unknown[] = [];
  for (const verb of verbs) {
    const answer = await scene.call(verb, conf);
    expect([answer.exitCode, answer.stdout]).toEqual([0, ""]);
    found.push(commandLine(answer)?.["execs"]);
  }
  return found;
}
