// The plugin beside the reference plugin `tuning`: the same environment and stdin give the same exit status, code and
// message, or the difference is one that is meant and stands in the table with its reason.
import { join } from "node:path";
import { test as base, expect } from "vitest";
import { cniPluginsDir } from "../../../../build/setup/paths.mjs";
import { canMakeNetns, makeNetns } from "../../../lab/netns.ts";
import type { CniAnswer } from "../../../lab/plugin.ts";
import { differences, type Shown } from "./differences.ts";
import { forms, makeScene, type Program, requireNetns, type Scene } from "./scene.ts";
import { type Vector, vectors } from "./vectors.ts";

/** One of the programs, with a netns to act on. */
type Party = { readonly ask: (vector: Vector) => Promise<Shown>; readonly remove: () => void };

const theReference: Program = [join(cniPluginsDir, "tuning")];

// All three run in a netns of the test's own, so that none ever acts on the machine's.
const test = base
  .extend("programs", { scope: "file" }, [theReference, forms.executable, forms.bundle])
  .extend("parties", { scope: "file" }, ({ programs }, { onCleanup }): readonly Party[] => {
    if (!canMakeNetns()) return [];
    const node = makeNetns("node");
    const parties = programs.map((program) => makeParty(node.path, program));
    onCleanup(() => {
      for (const { remove } of [node, ...parties]) remove();
    });
    return parties;
  })
  .extend("ask", ({ parties, skip }) => {
    requireNetns(skip);
    return (vector: Vector) => Promise.all(parties.map(({ ask }) => ask(vector)));
  });

test.for(vectors)(
  "the plugin answers as tuning does, or as is meant, when $name",
  async (vector, { ask }) => {
    const [theirs, ours, bundled] = await ask(vector);
    expect(bundled).toEqual(ours);
    const meant = differences[vector.name]?.ours;
    expect(ours).toEqual(meant ?? theirs);
    if (meant !== undefined) expect(theirs).not.toEqual(meant);
  },
);

test("every difference is one of a vector", () => {
  const names = vectors.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(Object.keys(differences).filter((name) => !names.includes(name))).toEqual([]);
});

function makeParty(node: string, program: Program): Party {
  const scene = makeScene("party");
  const onNode: Program = ["nsenter", `--net=${node}`, "--", ...program];
  return {
    ask: async ({ env, input }) => {
      const { CNI_NETNS: netns = "" } = env;
      const own = netns === "@own" ? { CNI_NETNS: node } : {};
      const more = { env: { ...env, ...own }, program: onNode };
      return shown(await scene.call("", stdinOf(scene, input), more));
    },
    remove: scene.remove,
  };
}

// A text that comes as it is names the state directory itself: the machine's own must stay as it was.
function stdinOf({ conf, stateDir }: Scene, input: Vector["input"]): object | string {
  if (typeof input === "string") return input.replaceAll("@state", stateDir);
  return "keys" in input ? conf(input.keys) : input;
}

function shown({ exitCode, stdout }: CniAnswer): Shown {
  if (exitCode === 0) return { exitCode };
  try {
    const { code, msg }: Record<string, unknown> = JSON.parse(stdout);
    return { exitCode, code, msg };
  } catch {
    // The reference prints its result and then an error, where it finds only afterwards that the netns is its own.
    return { exitCode, msg: stdout };
  }
}
