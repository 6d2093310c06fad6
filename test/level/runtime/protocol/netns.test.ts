// CNI_NETNS that is the plugin's own: tested before anything is done, unless the caller vouches for it.
import { expect } from "vitest";
import { savedNat } from "../../../lab/pod-nat.ts";
import { failure, forms, type Program, type Scene, test } from "./scene.ts";

// The plugin lives in the pod's netns: there is nothing of the machine's that it could harm.
function inside({ pod }: Scene): Program {
  return ["nsenter", `--net=${pod.path}`, "--", ...forms.executable];
}

const same = "plugin's netns and netns from CNI_NETNS should not be the same";
const untouched = "is the node's own network namespace; nothing was changed";

const refused: [verb: string, override: string, path: string][] = [
  ["ADD", "", "@pod"],
  ["ADD", "0", "@pod"],
  ["ADD", "false", "@pod"],
  ["ADD", "yes", "@pod"],
  ["ADD", "", "/proc/self/ns/net"],
  ["ADD", "", "/proc/thread-self/ns/net"],
  ["CHECK", "", "@pod"],
];

test.concurrent.for(refused)(
  "%s changes nothing when CNI_NETNS_OVERRIDE is %j and CNI_NETNS is its own, %s",
  async ([verb, override, given], { scene }) => {
    const path = given.replace("@pod", scene.pod.path);
    const env = { CNI_NETNS: path, CNI_NETNS_OVERRIDE: override };
    const answer = await scene.call(verb, scene.conf(), { env, program: inside(scene) });
    expect(answer.stdout).toBe(failure(8, same, `${path} ${untouched}`));
    expect(savedNat(scene.pod)).not.toContain("PROXY_INIT");
    expect(scene.records()).toEqual([]);
  },
);

test.concurrent.for(["1", "true", "TRUE", "True"])(
  "ADD, CHECK and DEL act when CNI_NETNS_OVERRIDE is %j and CNI_NETNS is their own",
  async (override, { scene }) => {
    const more = { env: { CNI_NETNS_OVERRIDE: override }, program: inside(scene) };
    const found: (number | boolean | undefined)[] = [];
    for (const verb of ["ADD", "CHECK", "DEL"]) {
      const { exitCode } = await scene.call(verb, scene.conf(), more);
      found.push(exitCode, savedNat(scene.pod).includes("PROXY_INIT"));
    }
    expect(found).toEqual([0, true, 0, true, 0, false]);
  },
);

test("DEL forgets and touches no rule when CNI_NETNS is its own", async ({ scene }) => {
  await scene.call("ADD", scene.conf());
  const rules = savedNat(scene.pod);
  const answer = await scene.call("DEL", scene.conf(), { program: inside(scene) });
  expect([answer.exitCode, answer.stdout, scene.records()]).toEqual([0, "", []]);
  expect(withoutTimes(savedNat(scene.pod))).toBe(withoutTimes(rules));
});

function withoutTimes(save: string): string {
  return save.replaceAll(/^#.*$/gm, "");
}
