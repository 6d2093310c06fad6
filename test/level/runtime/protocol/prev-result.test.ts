// prevResult goes out as it came in, byte for byte, whatever is in it and whatever way it came.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { expect } from "vitest";
import { supportedVersions } from "../../../../src/cni/version.ts";
import { failure, forms, linkerd, type Program, type Scene, test } from "./scene.ts";

const escaped = String.raw`"\u00e9\ud83d\ude00\/\b\"\\\u2028 \ud800 é 😀"`;

/** Members of a result after its cniVersion, as text. */
const members: [what: string, text: string][] = [
  ["unknown fields", '"x":{"y":[null,true,{"z":{}}]},"com.example/mtu":9000'],
  [
    "big numbers",
    '"a":12345678901234567890,"b":-0,"c":0.1000,"d":1.0,"e":123456789.123456789123456789',
  ],
  ["numbers that no double holds", '"a":1e400,"b":-1E+999,"c":1e-999,"d":5E-324'],
  ["keys that look like integers", '"10":1,"9":2,"1":3,"a":{"2":0,"1":0}'],
  ["escapes", `"a":${escaped},"\\u0063":1`],
  ["keys twice", '"a":1,"a":2,"dns":{"x":1,"x":{}}'],
  ["keys of prototypes", '"__proto__":{"a":1},"constructor":null,"toString":1'],
  ["blanks", '"a" :\t[ 1 ,\n2\r\n] , "b":{ }'],
  ["empty keys and values", '"":"","ips":[],"routes":null,"interfaces":null'],
  ["deep nesting", `"a":${"[".repeat(2_000)}${"]".repeat(2_000)}`],
  [
    "all that 1.1.0 knows",
    '"interfaces":[{"name":"eth0","mac":"00:00:5e:00:53:01","mtu":1500,"sandbox":"/run/netns/x","socketPath":"/s","pciID":"0000:00:1f.6"}],"ips":[{"address":"10.9.0.2/24","gateway":"10.9.0.1","interface":0}],"routes":[{"dst":"0.0.0.0/0","gw":"10.9.0.1","mtu":1400,"advmss":1360,"priority":10,"table":254,"scope":0}],"dns":{"nameservers":["10.0.0.10"],"domain":"d","search":["s"],"options":["o"]}',
  ],
  [
    "all that 0.3.0 knows",
    '"ips":[{"version":"4","address":"10.9.0.2/24","gateway":"10.9.0.1","interface":-1}],"dns":{}',
  ],
];

test.concurrent.for(members)(
  "ADD passes prevResult on as text when it has %s",
  async ([, text], { scene }) => {
    const result = `{"cniVersion":"1.1.0",${text}}`;
    const { exitCode, stdout } = await scene.call("ADD", stdinOf(scene, "1.1.0", result));
    expect([exitCode, stdout]).toEqual([0, result]);
  },
);

test.concurrent.for(supportedVersions)(
  "ADD passes prevResult on as text when it is of %s and has all of that",
  async (cniVersion, { scene }) => {
    const all = members.map(([, text]) => text).join(",");
    const result = `{"cniVersion":"${cniVersion}",${all}}`;
    const { exitCode, stdout } = await scene.call("ADD", stdinOf(scene, cniVersion, result));
    expect([exitCode, stdout]).toEqual([0, result]);
  },
);

const given: [when: string, member: string, stdout: string][] = [
  ["there is none", "", '{"cniVersion":"1.0.0"}'],
  ["it is null", ',"prevResult":null', '{"cniVersion":"1.0.0"}'],
  ["it is empty", ',"prevResult":{}', '{"cniVersion":"1.0.0"}'],
  ["it names no version", ',"prevResult":{"a":1e400}', '{"cniVersion":"1.0.0","a":1e400}'],
  [
    "its version comes last",
    ',"prevResult":{"a":1,"cniVersion":"1.0.0"}',
    '{"a":1,"cniVersion":"1.0.0"}',
  ],
  [
    "its key is in other case",
    ',"PREVRESULT":{"cniVersion":"1.0.0","a":1}',
    '{"cniVersion":"1.0.0","a":1}',
  ],
  [
    "its key is escaped",
    String.raw`,"prev\u0052esult":{"cniVersion":"1.0.0","a":1}`,
    '{"cniVersion":"1.0.0","a":1}',
  ],
  [
    "it is there twice",
    ',"prevResult":{"a":1},"prevResult":{"cniVersion":"1.0.0","b":2}',
    '{"cniVersion":"1.0.0","b":2}',
  ],
  ["a string holds its key", String.raw`,"a":"\",\"prevResult\":{}"`, '{"cniVersion":"1.0.0"}'],
];

test.concurrent.for(given)(
  "ADD prints a valid result when %s",
  async ([, member, stdout], { scene }) => {
    const conf = JSON.stringify(scene.conf({ cniVersion: "1.0.0", prevResult: undefined }));
    const answer = await scene.call("ADD", `${conf.slice(0, -1)}${member}}`);
    expect([answer.exitCode, answer.stdout]).toEqual([0, stdout]);
  },
);

const ofOld = '"ips":[{"version":"4","address":"10.9.0.2/24"}],"x":12345678901234567890';
const ofNew = '"ips":[{"address":"10.9.0.2/24"}],"x":12345678901234567890';
const wordsOf = (version: string) => (version < "1" ? ofOld : ofNew);
const pairs = supportedVersions.flatMap((from) =>
  supportedVersions.filter((to) => to !== from).map((to): [string, string] => [from, to]),
);

test.concurrent.for(pairs)(
  "ADD takes a prevResult of %s in a list of %s, and prints it in the list's",
  async ([from, to], { scene }) => {
    const result = `{"cniVersion":"${from}",${wordsOf(from)}}`;
    const { exitCode, stdout } = await scene.call("ADD", stdinOf(scene, to, result));
    expect([exitCode, stdout]).toEqual([0, `{"cniVersion":"${to}",${wordsOf(to)}}`]);
  },
);

const refused: [when: string, prevResult: unknown, problem: string][] = [
  ["it is a list", [], "it is not a JSON object"],
  ["it is a string", "x", "it is not a JSON object"],
  [
    "it is of a version that is not spoken",
    { cniVersion: "0.2.0" },
    'result type supports [1.1.0] but unmarshalled CNIVersion is "0.2.0"',
  ],
  ["its ips are no list", { ips: {} }, "ips is not a list"],
  ["an address is missing", { ips: [{}] }, "an entry of ips has no address"],
];

test.concurrent.for(refused)(
  "ADD does nothing when prevResult is wrong: %s",
  async ([, prevResult, problem], { scene }) => {
    const { exitCode, stdout } = await scene.call("ADD", scene.conf({ prevResult }));
    expect([exitCode, stdout]).toEqual([1, failure(7, `could not parse prevResult: ${problem}`)]);
    expect(scene.records()).toEqual([]);
  },
);

const megabyte = `{"cniVersion":"1.1.0","x":"${"é\\n".repeat(260_000)}","y":[${"1,".repeat(100_000)}1]}`;

const nonBlocking = (fd: "STDIN" | "STDOUT") =>
  `fcntl(${fd}, F_SETFL, O_NONBLOCK | fcntl(${fd}, F_GETFL, 0));`;
const perl = (script: string): Program => [
  "perl",
  "-MFcntl",
  "-e",
  `${script} exec @ARGV`,
  ...forms.executable,
];
const shell = (script: string): Program => ["bash", "-c", script, "bash", ...forms.executable];

const ways: [when: string, program: Program][] = [
  ["it is as it is", forms.executable],
  [
    "stdin is a pipe that does not block",
    shell(`cat | perl -MFcntl -e '${nonBlocking("STDIN")} exec @ARGV' "$@"`),
  ],
  [
    "stdin and stdout are sockets that do not block",
    perl(`${nonBlocking("STDIN")} ${nonBlocking("STDOUT")}`),
  ],
  [
    "stdout does not block, and is read slowly",
    shell(`perl -MFcntl -e '${nonBlocking("STDOUT")} exec @ARGV' "$@" | (sleep 0.3; cat)`),
  ],
  ["stdin is a file", shell('cat >"$FILE"; exec "$@" <"$FILE"')],
  ["stdin comes slowly", shell('(head -c 1000; sleep 0.2; head -c 100000; sleep 0.2; cat) | "$@"')],
];

test.concurrent.for(ways)("ADD passes a megabyte on when %s", async ([, program], { scene }) => {
  const stdin = stdinOf(scene, "1.1.0", megabyte);
  const more = { program, env: { FILE: `${scene.dir}/stdin` } };
  const { exitCode, stdout } = await scene.call("ADD", stdin, more);
  expect(exitCode).toBe(0);
  expect(stdout === megabyte).toBe(true);
});

test("ADD waits for the end of stdin when it comes byte by byte", async ({ scene }) => {
  const result = '{"cniVersion":"1.1.0","x":"é😀"}';
  const env = {
    CNI_COMMAND: "ADD",
    CNI_CONTAINERID: "c1",
    CNI_NETNS: scene.pod.path,
    CNI_IFNAME: "eth0",
    CNI_PATH: "/",
    PATH: process.env["PATH"],
  };
  const child = spawn(forms.executable[0], { env, stdio: ["pipe", "pipe", "ignore"] });
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  const bytes = Buffer.from(stdinOf(scene, "1.1.0", result));
  for (const [at] of bytes.entries()) {
    child.stdin.write(bytes.subarray(at, at + 1));
    if (at % 20 === 0) await setTimeout(1);
  }
  expect(stdout).toBe("");
  child.stdin.end();
  await once(child, "close");
  expect(stdout).toBe(result);
});

/** The conf's text with a prevResult's text in it. */
function stdinOf({ stateDir }: Scene, cniVersion: string, result: string): string {
  const conf = JSON.stringify({
    cniVersion,
    name: "lab",
    linkerd,
    sluice: { "state-dir": stateDir },
  });
  return `${conf.slice(0, -1)},"prevResult":${result}}`;
}
