// Which iptables programs a node has, from names, links and versions. In a directory of the test's own.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Backend } from "../../src/netfilter/table.ts";
import { programFinder } from "../../src/netns/toolbox.ts";
import { openPrograms, type Programs, readVersion } from "../../src/node/programs.ts";

let directory = "";

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "sluice-"));
});

afterEach(() => rmSync(directory, { recursive: true }));

function install(...names: readonly string[]): void {
  for (const name of names) writeFileSync(join(directory, name), "", { mode: 0o755 });
}

/** Links `iptables-restore` and `-save` to a program, as distributions do. */
function link(program: string): void {
  install(program);
  for (const verb of ["restore", "save"]) {
    symlinkSync(join(directory, program), join(directory, `iptables-${verb}`));
  }
}

/** Programs that say this of their version; counts how often they are asked. */
function open(version = ""): { programs: Programs; asked: string[] } {
  const asked: string[] = [];
  const programs = openPrograms({
    toolbox: {
      find: programFinder(directory),
      shell: "/bin/sh",
      env: { PATH: directory, LC_ALL: "C" },
    },
    nssMask: () => [],
    exec: ({ argv }) => {
      asked.push(argv.join(" ").replaceAll(`${directory}/`, ""));
      return Promise.resolve({
        exitCode: 0,
        timedOut: false,
        startError: "",
        outputs: [version, ""],
      });
    },
  });
  return { programs, asked };
}

const pair = (name: string, waits: boolean) => ({
  restore: join(directory, `${name}-restore`),
  save: join(directory, `${name}-save`),
  waits,
});

test("find() takes programs with the backend in their name, and asks nothing", async () => {
  install("iptables-nft-restore", "iptables-nft-save", "ip6tables-legacy-restore");
  const { programs, asked } = open();
  expect(await programs.find("nft", "ipv4")).toEqual(pair("iptables-nft", true));
  expect(await programs.find("nft", "ipv6")).toBe(undefined);
  expect(await programs.find("legacy", "ipv4")).toBe(undefined);
  expect(await programs.find("legacy", "ipv6")).toBe(undefined);
  expect(asked).toEqual([]);
});

const links: [program: string, backend: Backend, other: Backend][] = [
  ["xtables-nft-multi", "nft", "legacy"],
  ["xtables-legacy-multi", "legacy", "nft"],
];

test.each(links)(
  "find() takes plain names when they lead to %s",
  async (program, backend, other) => {
    link(program);
    const { programs, asked } = open();
    expect(await programs.find(backend, "ipv4")).toEqual(pair("iptables", true));
    expect(await programs.find(other, "ipv4")).toBe(undefined);
    const plain = { tools: pair("iptables", true), backend };
    expect(await programs.findPlain("ipv4")).toEqual(plain);
    expect(await programs.findPlain("ipv6")).toBe(undefined);
    expect(asked).toEqual([]);
  },
);

test("find() prefers the backend's own names", async () => {
  link("xtables-nft-multi");
  install("iptables-nft-restore", "iptables-nft-save");
  expect(await open().programs.find("nft", "ipv4")).toEqual(pair("iptables-nft", true));
});

test("findPlain() asks the program when its name does not tell", async () => {
  link("xtables-multi");
  const { programs, asked } = open("iptables-restore v1.4.21\n");
  expect(await programs.findPlain("ipv4")).toEqual({
    tools: pair("iptables", false),
    backend: "legacy",
  });
  expect(asked).toEqual(["iptables-restore --version"]);
});

test("findPlain() passes over what cannot be run", async () => {
  mkdirSync(join(directory, "none"));
  writeFileSync(join(directory, "iptables-restore"), "", { mode: 0o644 });
  install("iptables-save");
  expect(await open().programs.findPlain("ipv4")).toBe(undefined);
});

const versions: [said: string, backend: Backend, waits: boolean][] = [
  ["iptables-restore v1.8.9 (nf_tables)\n", "nft", true],
  ["iptables-restore v1.8.9 (legacy)\n", "legacy", true],
  ["iptables v1.8.10 (nf_tables)", "nft", true],
  ["iptables-restore v1.6.2", "legacy", true],
  ["iptables-restore v1.6.1", "legacy", false],
  ["iptables-restore v1.4.7", "legacy", false],
  ["iptables-restore v2.0", "legacy", true],
  ["", "legacy", false],
];

test.each(versions)("readVersion() of %j is %s, and --wait: %s", (said, backend, waits) => {
  expect(readVersion(said)).toEqual({ backend, waits });
});
