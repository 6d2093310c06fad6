// Which iptables programs a node has, from names, links and versions. In a directory of the test's own.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Backend } from "../../src/netfilter/table.ts";
import { programFinder } from "../../src/netns/host.ts";
import { openToolbox, readVersion, type Toolbox } from "../../src/node/toolbox.ts";

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

/** A toolbox whose programs say this of their version; counts how often they are asked. */
function open(version = ""): { toolbox: Toolbox; asked: string[] } {
  const asked: string[] = [];
  const toolbox = openToolbox({
    find: programFinder(directory),
    path: directory,
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
  return { toolbox, asked };
}

const pair = (name: string, waits: boolean) => ({
  restore: join(directory, `${name}-restore`),
  save: join(directory, `${name}-save`),
  waits,
});

test("find() takes programs with the backend in their name, and asks nothing", async () => {
  install("iptables-nft-restore", "iptables-nft-save", "ip6tables-legacy-restore");
  const { toolbox, asked } = open();
  expect(await toolbox.find("nft", "ipv4")).toEqual(pair("iptables-nft", true));
  expect(await toolbox.find("nft", "ipv6")).toBe(undefined);
  expect(await toolbox.find("legacy", "ipv4")).toBe(undefined);
  expect(await toolbox.find("legacy", "ipv6")).toBe(undefined);
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
    const { toolbox, asked } = open();
    expect(await toolbox.find(backend, "ipv4")).toEqual(pair("iptables", true));
    expect(await toolbox.find(other, "ipv4")).toBe(undefined);
    const plain = { tools: pair("iptables", true), backend };
    expect(await toolbox.findPlain("ipv4")).toEqual(plain);
    expect(await toolbox.findPlain("ipv6")).toBe(undefined);
    expect(asked).toEqual([]);
  },
);

test("find() prefers the backend's own names", async () => {
  link("xtables-nft-multi");
  install("iptables-nft-restore", "iptables-nft-save");
  expect(await open().toolbox.find("nft", "ipv4")).toEqual(pair("iptables-nft", true));
});

test("findPlain() asks the program when its name does not tell", async () => {
  link("xtables-multi");
  const { toolbox, asked } = open("iptables-restore v1.4.21\n");
  expect(await toolbox.findPlain("ipv4")).toEqual({
    tools: pair("iptables", false),
    backend: "legacy",
  });
  expect(asked).toEqual(["iptables-restore --version"]);
});

test("findPlain() passes over what cannot be run", async () => {
  mkdirSync(join(directory, "none"));
  writeFileSync(join(directory, "iptables-restore"), "", { mode: 0o644 });
  install("iptables-save");
  expect(await open().toolbox.findPlain("ipv4")).toBe(undefined);
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
