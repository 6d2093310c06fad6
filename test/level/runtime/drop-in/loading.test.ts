// An ADD that does not ask the API pays nothing for the client: Node's TLS is not even loaded. In the executable, one that
// asks finds all of it compiled.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { expect } from "vitest";
import { bundle, executable, node } from "../../../lab/plugin.ts";
import {
  type Attachment,
  argsOf,
  type ConfWish,
  confFor,
  injected,
  lookInto,
  test,
} from "./level.ts";

/** Written when the process ends: is what the API client needs loaded? */
const hook = `process.on("exit", () => require("node:fs").writeFileSync(
  process.env.SLC_LOADED, String(process.moduleLoadList.includes("NativeModule https"))));`;

type Way = {
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
};

/** An ADD that succeeds; what it said on stderr. */
async function add(pod: Attachment, wish: ConfWish, { argv, env }: Way): Promise<string> {
  const [file, ...args] = argv;
  const { exitCode, stdout, stderr } = await execa(file, args, {
    env: {
      PATH: process.env["PATH"] ?? "",
      CNI_COMMAND: "ADD",
      CNI_CONTAINERID: "c1",
      CNI_NETNS: pod.netns.path,
      CNI_IFNAME: "eth0",
      CNI_PATH: "/opt/cni/bin",
      CNI_ARGS: argsOf({ namespace: "emoji", name: "web" }),
      ...env,
    },
    extendEnv: false,
    input: JSON.stringify(confFor(pod, wish)),
    reject: false,
  });
  expect([exitCode, JSON.parse(stdout).code]).toEqual([0, undefined]);
  return stderr;
}

async function addByBundle(pod: Attachment, wish: ConfWish): Promise<string> {
  const [file, loaded] = [join(pod.dir, "hook.cjs"), join(pod.dir, "loaded")];
  writeFileSync(file, hook);
  await add(pod, wish, {
    argv: [node, "--require", file, bundle],
    env: { SLC_LOADED: loaded },
  });
  return readFileSync(loaded, "utf8");
}

/** Those of Node's modules that an ADD of the executable took from beside the snapshot, by how they came to be compiled. */
async function addByExecutable(pod: Attachment, wish: ConfWish) {
  const stderr = await add(pod, wish, {
    argv: [copyThatListens(pod.dir)],
    env: { NODE_DEBUG_NATIVE: "CODE_CACHE" },
  });
  const named = (pattern: RegExp) =>
    [...stderr.matchAll(pattern)].flatMap(([, name]) => name ?? []).toSorted();
  return {
    found: named(/^Compiling (\S+) with code cache/gm),
    accepted: named(/^Code cache of (\S+) .*is accepted$/gm),
    compiled: named(/^Compiling (\S+) without code cache/gm),
  };
}

// No variable reaches the Node in the executable, since the file begins with something else (build/entry.ts): in a copy, it
// begins where the pinned Node does.
function copyThatListens(dir: string): string {
  const file = join(dir, "sluice");
  const bytes = readFileSync(executable);
  readFileSync(node).copy(bytes, entryAt, entryAt, entryAt + 8);
  writeFileSync(file, bytes, { mode: 0o755 });
  return file;
}

/** Where an ELF file says at which address it begins. */
const entryAt = 0x18;

const adds: [what: string, wish: ConfWish, rules: number, loaded: string][] = [
  ["the runtime's annotations, of a meshed pod", { annotations: injected() }, 7, "false"],
  ["the runtime's annotations, of another pod", { annotations: {} }, 0, "false"],
  ["no pod facts at all", { top: { kubernetes: undefined } }, 7, "false"],
  ["the namespace alone", { sluice: { "exclude-namespaces": ["emoji"] } }, 0, "false"],
  ["the API", {}, 7, "true"],
];

test.for(adds)(
  "ADD loads the API client only where it asks the API: by %s",
  async ([, wish, rules, loaded], { pod }) => {
    expect(await addByBundle(pod, wish)).toBe(loaded);
    expect(lookInto(pod).rules.ipv4.length).toBe(rules);
  },
);

test.for(adds)(
  "the executable's ADD compiles none of Node's modules: by %s",
  async ([, wish, , loaded], { pod }) => {
    const { found, accepted, compiled } = await addByExecutable(pod, wish);
    expect({ accepted, compiled }).toEqual({ accepted: found, compiled: [] });
    const asked = ["https", "tls", "vm"].map((name) => String(found.includes(name)));
    expect(asked).toEqual([loaded, loaded, loaded]);
  },
);
