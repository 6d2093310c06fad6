// GC: forgets the attachments of its network that the runtime no longer lists, and harms nobody else.
import { copyFileSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { expect } from "vitest";
import { makeNetns } from "../../../lab/netns.ts";
import { commandLine, failure, forms, type Program, type Scene, test } from "./scene.ts";

const [c1, c2, other] = ["lab,c1,eth0.json", "lab,c2,eth0.json", "other,c1,eth0.json"] as const;
const twoOfC1 = "lab,c1,net1.json";
const broken = "lab,broken,eth0.json";
const all = [broken, c1, twoOfC1, c2, other].toSorted();

const valid = "cni.dev/valid-attachments";
const tagged = "cni.dev/attachments";
const eth0 = (containerID: string) => ({ containerID, ifname: "eth0" });

const lists: [when: string, keys: object, left: readonly string[]][] = [
  [
    "all are listed",
    { [valid]: [eth0("c1"), eth0("c2"), { containerID: "c1", ifname: "net1" }, eth0("broken")] },
    all,
  ],
  ["one is listed", { [valid]: [eth0("c2")] }, [c2, other]],
  ["one is listed under the name of the tagged spec", { [tagged]: [eth0("c2")] }, [c2, other]],
  ["the two names' lists differ", { [tagged]: [eth0("c1")], [valid]: [eth0("c2")] }, [c2, other]],
  ["the entries have more keys", { [valid]: [{ ...eth0("c2"), network: "lab" }] }, [c2, other]],
  [
    "the entries' keys are in capitals",
    { [valid]: [{ CONTAINERID: "c2", IFNAME: "eth0" }] },
    [c2, other],
  ],
  [
    "only the interface is another",
    { [valid]: [{ containerID: "c1", ifname: "net1" }] },
    [twoOfC1, other],
  ],
  ["an unknown one is listed", { [valid]: [eth0("c3")] }, [other]],
  ["the list is empty", { [valid]: [] }, [other]],
  ["the list is null", { [valid]: null, [tagged]: null }, [other]],
  ["there is no list", {}, [other]],
];

test.concurrent.for(lists)("GC keeps what is valid when %s", async ([, keys, left], { scene }) => {
  await makeRecords(scene);
  const answer = await scene.call("GC", scene.conf(keys));
  expect([answer.exitCode, answer.stdout]).toEqual([0, ""]);
  expect(recordsOf(scene)).toEqual(left);
  expect(commandLine(answer)).toMatchObject({ removed: all.length - left.length, execs: 0 });
});

const unreadable: [when: string, keys: object, problem: string][] = [
  ["the list is an object", { [valid]: {} }, `${valid}: it is not a list`],
  [
    "an entry is null",
    { [valid]: [eth0("c1"), null] },
    `${valid}: null is not {containerID, ifname}`,
  ],
  [
    "an entry has no ifname",
    { [tagged]: [{ containerID: "c1" }] },
    `${tagged}: {"containerID":"c1"} is not {containerID, ifname}`,
  ],
];

test.concurrent.for(unreadable)(
  "GC removes nothing when %s",
  async ([, keys, problem], { scene }) => {
    await makeRecords(scene);
    const { exitCode, stdout } = await scene.call("GC", scene.conf(keys));
    expect([exitCode, stdout]).toEqual([1, failure(7, `invalid conf: ${problem}`)]);
    expect(recordsOf(scene)).toEqual(all);
  },
);

test("GC goes on, and reports at the end, when some cannot be removed", async ({ scene }) => {
  await makeRecords(scene);
  const stuck = ["lab,a,eth0.json", "lab,z,eth0.json"];
  for (const name of stuck) {
    mkdirSync(fileOf(scene, name));
    age(scene, name);
  }
  const { exitCode, stdout } = await scene.call("GC", scene.conf());
  const { code, msg, details }: Record<string, unknown> = JSON.parse(stdout);
  expect([exitCode, code, msg]).toEqual([
    1,
    5,
    "2 of 6 stale records of network lab could not be removed",
  ]);
  for (const name of stuck) expect(details).toContain(fileOf(scene, name));
  expect(recordsOf(scene)).toEqual([stuck[0], stuck[1], other].toSorted());
});

test("GC succeeds when there is no state directory", async ({ scene }) => {
  const { exitCode, stdout } = await scene.call("GC", scene.conf());
  expect([exitCode, stdout]).toEqual([0, ""]);
});

test("GC leaves what was added since it began, but for netns that are gone", async ({ scene }) => {
  const gone = makeNetns("gone");
  const go = join(scene.dir, "go");
  const script = '{ until [ -e "$GO" ]; do sleep 0.02; done; cat; } | "$@"';
  const program: Program = ["bash", "-c", script, "bash", ...forms.executable];
  const begun = scene.call("GC", scene.conf(), { program, env: { GO: go } });
  await setTimeout(500);
  await scene.call("ADD", scene.conf());
  await scene.call("ADD", scene.conf(), { env: { CNI_CONTAINERID: "c2", CNI_NETNS: gone.path } });
  gone.remove();
  writeFileSync(go, "");
  expect((await begun).exitCode).toBe(0);
  expect(scene.records()).toEqual([c1]);
  await scene.call("GC", scene.conf());
  expect(scene.records()).toEqual([]);
});

test("GC harms no ADD when both run all the time", async ({ scene }) => {
  const begun: string[] = [];
  let adding = 2;
  const add = async (lane: string) => {
    for (let i = 0; i < 8; i++) {
      const id = `${lane}${i}`;
      begun.push(id);
      const { exitCode } = await scene.call("ADD", scene.conf(), { env: { CNI_CONTAINERID: id } });
      expect(exitCode).toBe(0);
    }
    adding--;
  };
  const collect = async () => {
    let calls = 0;
    for (; adding > 0; calls++) {
      // What the runtime knows now; more is added before GC has read it.
      const { exitCode } = await scene.call("GC", scene.conf({ [valid]: begun.map(eth0) }));
      expect(exitCode).toBe(0);
    }
    return calls;
  };
  const [calls] = await Promise.all([collect(), add("a"), add("b")]);
  expect(calls).toBeGreaterThan(5);
  expect(recordsOf(scene)).toEqual(begun.map((id) => `lab,${id},eth0.json`).toSorted());
});

// An attachment's record, and copies of it for others: GC goes by their names.
async function makeRecords(scene: Scene): Promise<void> {
  await scene.call("ADD", scene.conf());
  for (const name of [twoOfC1, c2, other]) copyFileSync(fileOf(scene, c1), fileOf(scene, name));
  writeFileSync(fileOf(scene, broken), "{");
  for (const name of all) age(scene, name);
}

function age(scene: Scene, name: string): void {
  const minuteAgo = Date.now() / 1_000 - 60;
  utimesSync(fileOf(scene, name), minuteAgo, minuteAgo);
}

function fileOf({ stateDir }: Scene, name: string): string {
  return join(stateDir, "attachments", name);
}

function recordsOf({ stateDir }: Scene): string[] {
  return readdirSync(join(stateDir, "attachments")).toSorted();
}
