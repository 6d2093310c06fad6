// In the middle of a real list of five plugins, run by cnitool: the result that comes in goes out as text, and all verbs of
// the list's version work through the chain.
import { expect } from "vitest";
import { rawMember } from "../../../../src/cni/raw-json.ts";
import { type Chain, makeChain } from "./chain.ts";
import { test as base } from "./scene.ts";

type Make = (keys: object) => Chain;

const test = base.extend("make", ({ scene }, { onCleanup }): Make => {
  const chains: Chain[] = [];
  onCleanup(() => {
    for (const { remove } of chains) remove();
  });
  return (keys) => {
    const chain = makeChain(scene, keys);
    chains.push(chain);
    return chain;
  };
});

const lists: { readonly name: string; readonly keys: object; readonly speaks: string }[] = [
  ...["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"].map((cniVersion) => {
    return { name: `is of ${cniVersion}`, keys: { cniVersion }, speaks: cniVersion };
  }),
  {
    name: "names the versions up to 1.1.0 in cniVersions",
    keys: { cniVersion: "0.4.0", cniVersions: ["0.4.0", "1.0.0", "1.1.0"] },
    speaks: "1.1.0",
  },
];

const verbs: Readonly<Record<string, readonly string[]>> = {
  "0.3.0": ["add", "del"],
  "0.3.1": ["add", "del"],
  "0.4.0": ["add", "check", "del"],
  "1.0.0": ["add", "check", "del"],
  "1.1.0": ["status", "add", "check", "gc", "del"],
};

test.concurrent.for(lists)(
  "the result passes as text when the list $name",
  async ({ keys, speaks }, { scene, make }) => {
    const chain = make(keys);
    const answers: unknown[] = [];
    for (const verb of verbs[speaks] ?? []) {
      const { exitCode, stderr } = await chain.cnitool(verb);
      answers.push({ verb, exitCode, ...(exitCode === 0 ? {} : { stderr }) });
    }
    expect(answers).toEqual(verbs[speaks]?.map((verb) => ({ verb, exitCode: 0 })));
    const { stdin, stdout } = chain.seen("ADD");
    expect(JSON.parse(stdin)).toMatchObject({ cniVersion: speaks, name: "slc-chain" });
    expect(stdout).toBe(rawMember(stdin, "prevResult"));
    expect(JSON.parse(stdout)).toMatchObject({
      cniVersion: speaks,
      ips: [{}, {}],
      routes: [{}, {}],
    });
    expect(talkative(chain, speaks)).toEqual([]);
    expect(scene.records()).toEqual([]);
  },
);

// Verbs other than ADD that printed something.
function talkative(chain: Chain, speaks: string): string[] {
  const others = verbs[speaks]?.filter((verb) => verb !== "add") ?? [];
  return others.filter((verb) => chain.seen(verb.toUpperCase()).stdout !== "");
}
