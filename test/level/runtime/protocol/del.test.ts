// DEL is lenient: whatever is missing, wrong or somebody else's, it succeeds, says nothing, and asks nobody.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execaSync } from "execa";
import { expect } from "vitest";
import { type LabNetns, makeNetns } from "../../../lab/netns.ts";
import { foreignLines, loadState, ownLines, save } from "../../../lab/states.ts";
import { kubeconfig, listenAsApi } from "./api-listener.ts";
import { commandLine, type Scene, test } from "./scene.ts";

type Env = Readonly<Record<string, string | undefined>>;

type Case = {
  readonly name: string;
  /** What happened after ADD; without it there was no ADD. */
  readonly since?: (scene: Scene) => void;
  readonly env?: Env;
  /** All of stdin, or keys in place of a good conf's. */
  readonly stdin?: string;
  readonly keys?: object;
  /** What is left: our rules, and the record. */
  readonly left?: readonly ("rules" | "record")[];
};

const recordOf = ({ stateDir }: Scene) => join(stateDir, "attachments/lab,c1,eth0.json");
const later = JSON.stringify({ format: 3, version: "0.9.0" });
const nothing = () => undefined;

const cases: readonly Case[] = [
  { name: "all is as ADD left it", since: nothing },
  { name: "the netns is empty", since: nothing, env: { CNI_NETNS: "" }, left: ["rules"] },
  {
    name: "the netns is not named",
    since: nothing,
    env: { CNI_NETNS: undefined },
    left: ["rules"],
  },
  {
    name: "the netns is not there",
    since: nothing,
    env: { CNI_NETNS: "/run/netns/slc-none" },
    left: ["rules"],
  },
  {
    name: "the netns is a process' that is gone",
    since: nothing,
    env: { CNI_NETNS: "/proc/4194305/ns/net" },
    left: ["rules"],
  },
  {
    name: "the netns is a file",
    since: nothing,
    env: { CNI_NETNS: "/etc/hostname" },
    left: ["rules"],
  },
  {
    name: "the netns is a directory",
    since: nothing,
    env: { CNI_NETNS: "/run/netns" },
    left: ["rules"],
  },
  {
    name: "the netns is another kind of namespace",
    since: nothing,
    env: { CNI_NETNS: "/proc/self/ns/mnt" },
    left: ["rules"],
  },
  {
    name: "the netns is the machine's own",
    since: nothing,
    env: { CNI_NETNS: "/proc/self/ns/net" },
    left: ["rules"],
  },
  { name: "there was no ADD" },
  {
    name: "there was no ADD, and the netns is not there",
    env: { CNI_NETNS: "/run/netns/slc-none" },
  },
  { name: "there is no prevResult", since: nothing, keys: { prevResult: undefined } },
  { name: "prevResult is no result", since: nothing, keys: { prevResult: [5] } },
  {
    name: "prevResult is of another version",
    since: nothing,
    keys: { prevResult: { cniVersion: "0.4.0" } },
  },
  { name: "linkerd is missing", since: nothing, keys: { linkerd: undefined } },
  {
    name: "linkerd is nonsense",
    since: nothing,
    keys: { linkerd: { "proxy-uid": [], "iptables-mode": "bpf" } },
  },
  { name: "stdin is empty", since: nothing, stdin: "", left: ["rules", "record"] },
  { name: "stdin is no JSON", since: nothing, stdin: "{", left: ["rules", "record"] },
  { name: "the conf has no name", since: nothing, keys: { name: "" }, left: ["rules", "record"] },
  {
    name: "the conf is of another network",
    since: nothing,
    keys: { name: "other" },
    left: ["rules", "record"],
  },
  {
    name: "the conf's version is not spoken",
    since: nothing,
    keys: { cniVersion: "9.9.9" },
    left: ["rules", "record"],
  },
  {
    name: "the interface is another",
    since: nothing,
    env: { CNI_IFNAME: "net1" },
    left: ["rules", "record"],
  },
  { name: "the record is gone", since: (scene) => rmSync(recordOf(scene)), left: ["rules"] },
  {
    name: "the record is empty",
    since: (scene) => writeFileSync(recordOf(scene), ""),
    left: ["rules"],
  },
  {
    name: "the record is cut short",
    since: (scene) => writeFileSync(recordOf(scene), '{"format":1,'),
    left: ["rules"],
  },
  {
    name: "the record is of another form",
    since: (scene) => writeFileSync(recordOf(scene), '{"format":2}'),
    left: ["rules"],
  },
  {
    name: "the record is of a later release",
    since: (scene) => writeFileSync(recordOf(scene), later, { mode: 0o600 }),
    left: ["rules", "record"],
  },
  {
    name: "the record is a directory",
    since: (scene) => {
      rmSync(recordOf(scene));
      mkdirSync(recordOf(scene));
    },
    left: ["rules", "record"],
  },
  {
    name: "the state directory is gone",
    since: ({ stateDir }) => rmSync(stateDir, { recursive: true }),
    left: ["rules"],
  },
  {
    name: "the state directory is a file",
    since: ({ stateDir }) => {
      rmSync(stateDir, { recursive: true });
      writeFileSync(stateDir, "");
    },
    left: ["rules"],
  },
];

test.concurrent.for(cases)(
  "DEL succeeds three times in a row when $name",
  async (one, { scene }) => {
    const api = await listenAsApi();
    const file = join(scene.dir, "kubeconfig");
    writeFileSync(file, kubeconfig(api.port));
    loadState(placeOf(scene.pod), "foreign rules only");
    const foreign = foreignLines(save(placeOf(scene.pod)));
    if (one.since !== undefined) await scene.call("ADD", scene.conf());
    one.since?.(scene);
    const stdin = one.stdin ?? scene.conf({ kubernetes: { kubeconfig: file }, ...one.keys });
    const execs: unknown[] = [];
    for (const _ of ["once", "twice", "three times"]) {
      const answer = await scene.call("DEL", stdin, { env: one.env ?? {} });
      expect([answer.exitCode, answer.stdout]).toEqual([0, ""]);
      execs.push(commandLine(answer)?.["execs"] ?? 0);
    }
    const saved = save(placeOf(scene.pod));
    expect(foreignLines(saved)).toEqual(foreign);
    const left = [
      ...(ownLines(saved).length > 0 ? ["rules"] : []),
      ...(scene.records().length > 0 ? ["record"] : []),
    ];
    expect(left).toEqual(one.left ?? []);
    expect(execs.slice(1)).toEqual([0, 0]);
    expect(api.connections()).toBe(0);
    api.close();
  },
);

test("DEL touches nothing when another netns is at the attachment's path", async ({ scene }) => {
  await scene.call("ADD", scene.conf());
  const other = makeNetns("other");
  loadState(placeOf(other), "linkerd-init's rules, complete");
  const before = rulesOf(other);
  execaSync("mount", ["--bind", other.path, scene.pod.path]);
  const answers = [await scene.call("DEL", scene.conf()), await scene.call("DEL", scene.conf())];
  const after = rulesOf(other);
  execaSync("umount", [scene.pod.path]);
  other.remove();
  expect(answers.map(({ exitCode, stdout }) => [exitCode, stdout])).toEqual([
    [0, ""],
    [0, ""],
  ]);
  expect(after).toEqual(before);
  expect(scene.records()).toEqual([]);
});

test("DEL touches nothing when the netns was recorded for another container since", async ({
  scene,
}) => {
  await scene.call("ADD", scene.conf());
  await scene.call("ADD", scene.conf(), { env: { CNI_CONTAINERID: "c2" } });
  const before = rulesOf(scene.pod);
  const { exitCode } = await scene.call("DEL", scene.conf());
  expect([exitCode, rulesOf(scene.pod), scene.records()]).toEqual([
    0,
    before,
    ["lab,c2,eth0.json"],
  ]);
  await scene.call("DEL", scene.conf(), { env: { CNI_CONTAINERID: "c2" } });
  expect([ownLines(rulesOf(scene.pod).join("\n")), scene.records()]).toEqual([[], []]);
});

test("DEL takes the rules along when an older record of a netns that is gone has its number", async ({
  scene,
}) => {
  await scene.call("ADD", scene.conf(), { env: { CNI_CONTAINERID: "c2" } });
  await scene.call("ADD", scene.conf());
  await scene.call("DEL", scene.conf());
  expect(ownLines(save(placeOf(scene.pod)))).toEqual([]);
});

test("DEL leaves the rules to the last when a container has two attachments", async ({ scene }) => {
  const net1 = { env: { CNI_IFNAME: "net1" } };
  await scene.call("ADD", scene.conf());
  await scene.call("ADD", scene.conf(), net1);
  const before = rulesOf(scene.pod);
  await scene.call("DEL", scene.conf(), net1);
  expect(rulesOf(scene.pod)).toEqual(before);
  await scene.call("DEL", scene.conf());
  expect(ownLines(save(placeOf(scene.pod)))).toEqual([]);
});

const placeOf = (netns: LabNetns) => ({ netns, backend: "nft", family: "ipv4" }) as const;

function rulesOf(netns: LabNetns): string[] {
  const lines = save(placeOf(netns)).split("\n");
  return lines.filter((line) => !line.startsWith("#"));
}

/** Keys that ADD would refuse, each beside a state directory and a log file that are good. */
const wrong: [what: string, keys: object, sluice: object][] = [
  ["too much time", {}, { "timeout-seconds": 300 }],
  ["words for numbers", {}, { "timeout-seconds": "soon", "api-server-ports": ["x", {}] }],
  ["a number for the level", { log_level: 7 }, {}],
  ["a word for linkerd", { linkerd: "x" }, {}],
  ["no linkerd", { linkerd: null }, {}],
  ["lists and numbers that are none", { linkerd: { ipv6: 1, "ports-to-redirect": {} } }, {}],
  ["a path for kubernetes", { kubernetes: "/k" }, { "pod-source": 1, "agent-pod": {} }],
];

test.concurrent.for(wrong)(
  "DEL finds its record, and says once what is wrong, when the conf has %s",
  async ([, keys, sluice], { scene }) => {
    await scene.call("ADD", scene.conf());
    const file = join(scene.dir, "log");
    const own = { "state-dir": scene.stateDir, ...sluice };
    const conf = scene.conf({ log_file: file, ...keys, sluice: own });
    const answer = await scene.call("DEL", conf);
    expect([answer.exitCode, answer.stdout]).toEqual([0, ""]);
    expect([ownLines(save(placeOf(scene.pod))), scene.records()]).toEqual([[], []]);
    const warnings = readFileSync(file, "utf8").match(/the conf has faults/g);
    expect(warnings?.length).toBe(1);
  },
);
