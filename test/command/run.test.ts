// One call from environment and stdin to stdout and exit status: what every command has in common.
import { expect, test } from "vitest";
import { version } from "../../src/version.ts";
import { cni, conf, env, failed, succeeded } from "../fake/call.ts";
import { makeWorld } from "../fake/world.ts";

test("run() introduces itself when there is no command", async () => {
  const stderr = `CNI plugin sluice ${version}\nCNI protocol versions supported: 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0\n`;
  const about = { exitCode: 0, stdout: "", stderr };
  expect(await makeWorld().call({}, "")).toEqual(about);
  expect(await makeWorld().call({ CNI_COMMAND: "" }, "")).toEqual(about);
});

test("run() answers VERSION without reading stdin", async () => {
  const stdout =
    '{"cniVersion":"1.1.0","supportedVersions":["0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]}';
  expect(await makeWorld().call({ CNI_COMMAND: "VERSION" }, "nonsense")).toEqual(succeeded(stdout));
});

const spoken = 'config is "0.2.0", plugin supports ["0.3.0" "0.3.1" "0.4.0" "1.0.0" "1.1.0"]';
const ofVersion = (cniVersion: string, error: ReturnType<typeof failed>) => ({
  ...error,
  stdout: error.stdout.replace('"cniVersion":"1.1.0"', `"cniVersion":"${cniVersion}"`),
});

const prototypeWords = ["constructor", "toString", "__proto__", "hasOwnProperty"];

const errors: [when: string, command: string, stdin: unknown, error: ReturnType<typeof failed>][] =
  [
    [
      "stdin is empty",
      "ADD",
      "",
      failed(6, "error unmarshall network config: Unexpected end of JSON input"),
    ],
    ["there is no name", "ADD", {}, failed(7, "missing network name")],
    ["the command is unknown", "HELLO", conf, failed(4, "unknown CNI_COMMAND: HELLO")],
    ["it is unknown in another case", "add", conf, failed(4, "unknown CNI_COMMAND: add")],
    ...prototypeWords.map((word): (typeof errors)[number] => [
      `it is a word that every object has, ${word}`,
      word,
      conf,
      failed(4, `unknown CNI_COMMAND: ${word}`),
    ]),
    [
      "the version is not spoken",
      "ADD",
      { ...conf, cniVersion: "0.2.0" },
      failed(1, "incompatible CNI versions", spoken),
    ],
    [
      "the verb came later",
      "CHECK",
      { ...conf, cniVersion: "0.3.1" },
      ofVersion("0.3.1", failed(1, "config version does not allow CHECK")),
    ],
    [
      "our part is wrong",
      "ADD",
      { ...conf, cniVersion: "1.0.0", linkerd: {}, log_level: 1, prevResult: undefined },
      ofVersion("1.0.0", failed(7, "invalid conf: log_level: expected string, found 1")),
    ],
    [
      "a value is missing",
      "ADD",
      { ...conf, linkerd: {} },
      failed(7, "invalid conf: linkerd.incoming-proxy-port is missing"),
    ],
    [
      "prevResult is of a version that is not spoken",
      "ADD",
      { ...conf, prevResult: { cniVersion: "0.2.0" } },
      failed(
        7,
        'could not parse prevResult: result type supports [1.1.0] but unmarshalled CNIVersion is "0.2.0"',
      ),
    ],
  ];

test.each(errors)(
  "run() answers with an error, and starts nothing, when %s",
  async (...[, command, stdin, error]) => {
    const world = makeWorld();
    expect(await world.call({ CNI_COMMAND: command, ...env }, stdin)).toEqual(error);
    expect(world.asked).toEqual([]);
    expect(world.open).toEqual(new Set());
  },
);

test("run() misses variables before it reads stdin", async () => {
  const { CNI_NETNS: _, ...rest } = env;
  const error = failed(4, "required env variables [CNI_NETNS] missing");
  expect(await makeWorld().call({ CNI_COMMAND: "ADD", ...rest }, "nonsense")).toEqual(error);
});

test("run() warns once of keys that nobody reads, and does its work", async () => {
  const world = makeWorld();
  const linkerd = { ...conf.linkerd, "proxy-id": 1 };
  expect(await cni(world, "ADD", { conf: { linkerd, policy: {} } })).toMatchObject({ exitCode: 0 });
  expect(world.lines).toMatchObject([
    {
      level: "warn",
      message: "the conf has keys that nobody reads",
      keys: ["policy", "linkerd.proxy-id"],
    },
    { level: "info", message: "done" },
  ]);
});

test("run() logs one error with what is known of the call when it fails", async () => {
  const world = makeWorld();
  world.programs.delete("nsenter");
  const error = failed(
    102,
    "could not work in the netns of pod emoji/web: nsenter is not on the node; install util-linux",
    "nothing of ours is left half-way; a family's rules are loaded all or not at all",
  );
  expect(await cni(world, "ADD")).toEqual(error);
  expect(world.lines).toEqual([
    {
      level: "error",
      message:
        "could not work in the netns of pod emoji/web: nsenter is not on the node; install util-linux",
      command: "ADD",
      containerId: "c0ffee",
      ifName: "eth0",
      pod: { namespace: "emoji", name: "web" },
      families: ["ipv4", "ipv6"],
      execs: 0,
      durationMs: 0,
      code: 102,
      details: "nothing of ours is left half-way; a family's rules are loaded all or not at all",
      err: "BatchError: nsenter is not on the node; install util-linux",
    },
  ]);
});

const subjects: [args: string, subject: string][] = [
  ["K8S_POD_NAMESPACE=emoji;K8S_POD_NAME=web", "pod emoji/web"],
  ["", "container 0123456789abcdef"],
];

test.each(subjects)(
  "run() calls the subject by name when CNI_ARGS is %j",
  async (args, subject) => {
    const world = makeWorld();
    world.execFaults.push({ exitCode: 1 });
    const change = { env: { CNI_ARGS: args, CNI_CONTAINERID: "0123456789abcdef" } };
    expect(await cni(world, "ADD", change)).toEqual(
      failed(
        102,
        `could not work in the netns of ${subject}: entering the netns failed with exit status 1: no message`,
        "nothing of ours is left half-way; a family's rules are loaded all or not at all",
      ),
    );
  },
);

const times: [seconds: number, limit: string, timeoutMs: number][] = [
  [20, "18", 19_000],
  [5, "4", 4_750],
  [1, "1", 1_750],
];

// Something is kept back for taking back; the second is for a child that does not keep its own limit.
test.each(times)("run() gives a child most of %i s: %s s, and one of grace", async (...found) => {
  const [seconds, limit, timeoutMs] = found;
  const world = makeWorld();
  await cni(world, "ADD", { conf: { sluice: { "timeout-seconds": seconds } } });
  expect(world.asked.map(({ argv }) => argv.slice(0, 4))).toEqual([
    ["/sbin/timeout", "-s", "KILL", limit],
  ]);
  expect(world.asked.map((request) => request.timeoutMs)).toEqual([timeoutMs]);
});

test("run() gives each child what is left of the time", async () => {
  const world = makeWorld();
  const meanwhile = () => {
    world.time.ms += 12_500;
  };
  const fails = { status: 4, stderr: "Resource temporarily unavailable" };
  world.iptables.events.push({ program: "iptables-nft-restore", meanwhile, fails });
  await cni(world, "ADD");
  expect(world.asked.map(({ timeoutMs }) => timeoutMs)).toEqual([19_000, 6_625]);
});
