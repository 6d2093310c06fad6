// A hundred pods at once, as when a node comes back: each is redirected, checked and cleaned, and none harms another.
import { execaSync } from "execa";
import { test as base, expect } from "vitest";
import { canMakeNetns, prefix } from "../../../lab/netns.ts";
import type { CniAnswer } from "../../../lab/plugin.ts";
import { makeScene, requireNetns, type Scene } from "./scene.ts";

const names = Array.from({ length: 100 }, (_, i) => `${prefix}${process.pid}-hundred-${i}`);
const pathOf = (name: string) => `/run/netns/${name}`;

const test = base.extend("scene", ({ skip }, { onCleanup }): Scene => {
  requireNetns(skip);
  const scene = makeScene("hundred");
  batch(names.map((name) => `netns add ${name}`));
  onCleanup(() => {
    batch(names.map((name) => `netns del ${name}`));
    scene.remove();
  });
  return scene;
});

test("a hundred ADDs, CHECKs and DELs all do right when each hundred is at once", {
  timeout: 180_000,
}, async ({ scene }) => {
  const conf = scene.conf({ sluice: { "state-dir": scene.stateDir, "timeout-seconds": 110 } });
  const all = (command: string) =>
    Promise.all(
      names.map((name) => {
        const env = { CNI_CONTAINERID: name, CNI_NETNS: pathOf(name), PATH: process.env["PATH"] };
        return scene.call(command, conf, { env });
      }),
    );
  const result = '{"cniVersion":"1.1.0","ips":[{"address":"10.9.0.2/24"}]}';
  expect(counted(await all("ADD"))).toEqual({ [`0 ${result}`]: 100 });
  expect(scene.records().length).toBe(100);
  expect(redirected()).toBe(100);
  expect(counted(await all("CHECK"))).toEqual({ "0 ": 100 });
  expect(counted(await all("DEL"))).toEqual({ "0 ": 100 });
  expect(scene.records()).toEqual([]);
  expect(redirected()).toBe(0);
});

// What was answered, and how often.
function counted(answers: readonly CniAnswer[]): Record<string, number> {
  const texts = answers.map(({ exitCode, stdout }) => `${exitCode} ${stdout}`);
  const count = (text: string) => texts.filter((other) => other === text).length;
  return Object.fromEntries(texts.map((text) => [text, count(text)]));
}

function redirected(): number {
  const script = 'for path; do nsenter --net="$path" iptables-nft-save -t nat; done';
  const { stdout } = execaSync("bash", ["-c", script, "bash", ...names.map(pathOf)]);
  return stdout.split("\n").filter((line) => line.startsWith(":PROXY_INIT_OUTPUT ")).length;
}

// One process for all: a hundred would take longer than the test.
function batch(lines: readonly string[]): void {
  if (canMakeNetns()) execaSync("ip", ["-batch", "-"], { input: lines.join("\n") });
}
