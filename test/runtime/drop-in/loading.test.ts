// An ADD that does not ask the API pays nothing for the client: Node's TLS is not even loaded. Looked at in the bundle, which
// a Node can be asked about; the executable is the same program (test/build).
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { expect } from "vitest";
import { bundle, node } from "../../lab/plugin.ts";
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

async function addByBundle(pod: Attachment, wish: ConfWish): Promise<string> {
  const [file, loaded] = [join(pod.dir, "hook.cjs"), join(pod.dir, "loaded")];
  writeFileSync(file, hook);
  const { exitCode, stdout } = await execa(node, ["--require", file, bundle], {
    env: {
      PATH: process.env["PATH"] ?? "",
      CNI_COMMAND: "ADD",
      CNI_CONTAINERID: "c1",
      CNI_NETNS: pod.netns.path,
      CNI_IFNAME: "eth0",
      CNI_PATH: "/opt/cni/bin",
      CNI_ARGS: argsOf({ namespace: "emoji", name: "web" }),
      SLC_LOADED: loaded,
    },
    extendEnv: false,
    input: JSON.stringify(confFor(pod, wish)),
    reject: false,
  });
  expect([exitCode, JSON.parse(stdout).code]).toEqual([0, undefined]);
  return readFileSync(loaded, "utf8");
}

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
