// stdout is one JSON document or nothing: what the tools print, and what Node would, never gets there.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { makeFakePath } from "./fake-path.ts";
import {
  failure,
  forms,
  linesOf,
  linkerd,
  type Program,
  prevResult,
  type Scene,
  test,
} from "./scene.ts";

/** Programs that say what they should not, on both streams, before they do their work. */
const noisy = ["timeout", "nsenter", "unshare", "iptables-nft-restore"];
const noise = `echo '{"noise":"of $0"}'; echo "noise" >&2; exec "$real" "$@"`;

test("stdout holds the result alone when the tools print", async ({ scene }) => {
  const fakes = makeFakePath(scene);
  for (const name of noisy) fakes.put(name, noise);
  const env = { PATH: fakes.path };
  const conf = scene.conf({ linkerd: { ...linkerd, ipv6: true } });
  const said: unknown[] = [];
  for (const verb of ["STATUS", "ADD", "ADD", "CHECK", "GC", "DEL"]) {
    const { exitCode, stdout, stderr } = await scene.call(verb, conf, { env });
    said.push([verb, exitCode, stdout]);
    // Only log lines: the tools' own words are in them, or nowhere.
    linesOf(stderr);
  }
  const result = JSON.stringify(prevResult);
  expect(said).toEqual([
    ["STATUS", 0, ""],
    ["ADD", 0, result],
    ["ADD", 0, result],
    ["CHECK", 0, ""],
    ["GC", 0, ""],
    ["DEL", 0, ""],
  ]);
});

test("stdout holds the error alone when a tool prints and fails", async ({ scene }) => {
  const fakes = makeFakePath(scene);
  fakes.put("iptables-nft-restore", 'cat >/dev/null; echo "oh no" >&2; echo "{}"; exit 3');
  const { exitCode, stdout, stderr } = await scene.call("ADD", scene.conf(), {
    env: { PATH: fakes.path },
  });
  const { code, msg }: Record<string, unknown> = JSON.parse(stdout);
  expect([exitCode, code]).toEqual([1, 101]);
  expect(msg).toContain("oh no");
  linesOf(stderr);
});

describe.for(Object.entries(forms))("the %s", ([form, program]) => {
  test("says one document or nothing when Node would warn", async ({ scene }) => {
    const env = { NODE_PENDING_DEPRECATION: "1", NODE_EXTRA_CA_CERTS: "/nonexistent.pem" };
    for (const [verb, input, stdout] of callsIn(scene)) {
      const answer = await scene.call(verb, input, { program, env });
      expect(answer.stdout).toMatch(stdout);
      // Of the bundle, Node itself may say something on stderr, before any of it runs.
      if (form === "executable") linesOf(answer.stderr);
    }
  });

  test("keeps stdout and stderr apart when they are one pipe", async ({ scene }) => {
    const merged: Program = ["bash", "-c", 'exec "$@" 2>&1', "bash", ...program];
    const { stdout } = await scene.call("ADD", scene.conf(), { program: merged });
    // Whole lines first, then the result, which no line feed ends.
    const lines = stdout.split("\n");
    expect(lines.pop()).toBe(JSON.stringify(prevResult));
    expect(linesOf(lines.join("\n")).at(-1)).toMatchObject({ command: "ADD", msg: "done" });
  });
});

/** Loaded before the bundle by Node's own option: warnings and an error of Node's kind, once the plugin runs. */
const hook = `process.nextTick(() => {
  process.emitWarning("odd");
  process.emitWarning("old", "DeprecationWarning", "DEP9999");
});`;

const bothered: [
  when: string,
  options: readonly string[],
  env: Readonly<Record<string, string>>,
][] = [
  ["warns", [], {}],
  ["warns with traces", ["--trace-warnings", "--trace-deprecation"], {}],
  ["throws deprecations", ["--throw-deprecation"], {}],
  ["is asked to debug itself", [], { NODE_DEBUG: "*", NODE_TLS_REJECT_UNAUTHORIZED: "0" }],
];

test.for(bothered)("the bundle does its work when Node %s", async ([, options, env], { scene }) => {
  const file = join(scene.dir, "hook.cjs");
  writeFileSync(file, hook);
  const [first, ...rest] = forms.bundle;
  const program: Program = [first, ...options, "--require", file, ...rest];
  for (const [verb, input, stdout] of callsIn(scene)) {
    const answer = await scene.call(verb, input, { program, env });
    expect(answer.stdout).toMatch(stdout);
    // What Node says of its own start comes before any of the bundle.
    if (env["NODE_DEBUG"] === undefined) linesOf(answer.stderr);
  }
});

test("the bundle says code 999 when something is thrown that nobody thought of", async ({
  scene,
}) => {
  const file = join(scene.dir, "hook.cjs");
  writeFileSync(file, 'process.nextTick(() => { throw new Error("odd"); });');
  const [first, ...rest] = forms.bundle;
  const program: Program = [first, "--require", file, ...rest];
  const { exitCode, stdout, stderr } = await scene.call("ADD", scene.conf(), { program });
  const details = "this is a fault of sluice; please report it with the log";
  const error = failure(999, "internal error for this call: odd", details);
  expect([exitCode, stdout]).toEqual([1, error]);
  expect(linesOf(stderr)).toMatchObject([
    { level: "error", err: { message: "odd" }, msg: "an error outside of the command" },
  ]);
});

type Row = readonly [verb: string, stdin: object | string, stdout: RegExp];

function callsIn(scene: Scene): readonly Row[] {
  return [
    ["VERSION", "", /^\{"cniVersion":"1.1.0","supportedVersions":\[.*\]\}$/],
    ["ADD", scene.conf(), /^\{"cniVersion":"1.1.0","ips":\[\{"address":"10.9.0.2\/24"\}\]\}$/],
    ["ADD", "{", /^\{"cniVersion":"1.1.0","code":6,"msg":"[^"]*"\}$/],
    ["CHECK", scene.conf(), /^$/],
    ["STATUS", scene.conf(), /^$/],
    ["GC", scene.conf(), /^$/],
    ["DEL", scene.conf(), /^$/],
    ["FOO", scene.conf(), /^\{"cniVersion":"1.1.0","code":4,"msg":"unknown CNI_COMMAND: FOO"\}$/],
  ];
}
