// Files that others may have had their hands on, in a directory of the test's own.
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  largestFileBytes,
  makeDirectory,
  readOwn,
  replaceFile,
  requireOwnDirectory,
  sweepTemporaries,
} from "../../src/state/file.ts";
import { cniError, thrownBy } from "../fake/thrown.ts";

let dir = "";
const at = (name: string) => join(dir, name);

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "sluice-"));
});

afterEach(() => rmSync(dir, { recursive: true }));

const advice = "whoever can write there could have rules removed or kept; root alone must own it";
const refused = (name: string, problem: string) =>
  cniError(5, `${at(name)} is not taken for ours: ${problem}`, advice);

test("makeDirectory() makes all levels for their owner only, and is content with what is there", () => {
  makeDirectory(at("a/b/c"));
  makeDirectory(at("a/b/c"));
  expect(["a", "a/b", "a/b/c"].map((name) => lstatSync(at(name)).mode & 0o777)).toEqual([
    0o700, 0o700, 0o700,
  ]);
});

const unmakable: [path: string, error: RegExp][] = [
  ["/proc/x", /^Error: ENOENT: .*mkdir '\/proc\/x'/],
  ["/proc/x/y/z", /^Error: ENOENT: .*mkdir '\/proc\/x'/],
  ["/dev/null/x", /^Error: ENOTDIR: .*mkdir '\/dev\/null\/x'/],
  ["/dev/null", /^Error: EEXIST: .*mkdir '\/dev\/null'/],
];

test.each(unmakable)("makeDirectory() comes back from %s, and says why", (path, error) => {
  expect(thrownBy(() => makeDirectory(path))).toMatch(error);
});

test("requireOwnDirectory() refuses links, and what others may write to, by its path", () => {
  mkdirSync(at("good"), { mode: 0o755 });
  mkdirSync(at("group"));
  chmodSync(at("group"), 0o770);
  mkdirSync(at("world"));
  chmodSync(at("world"), 0o1777);
  symlinkSync(at("good"), at("link"));
  const found = ["good", "none", "group", "world", "link"].map((name) =>
    thrownBy(() => requireOwnDirectory(at(name))),
  );
  expect(found).toEqual([
    undefined,
    undefined,
    refused("group", "others than its owner may write (mode 770)"),
    refused("world", "others than its owner may write (mode 1777)"),
    refused("link", "it is a symbolic link"),
  ]);
});

test("readOwn() reads files of ours, and refuses what is none", () => {
  writeFileSync(at("good"), "text", { mode: 0o600 });
  writeFileSync(at("largest"), Buffer.alloc(largestFileBytes, "x"));
  writeFileSync(at("large"), Buffer.alloc(largestFileBytes + 1, "x"));
  writeFileSync(at("others"), "text");
  chmodSync(at("others"), 0o666);
  symlinkSync(at("good"), at("link"));
  mkdirSync(at("directory"));
  expect([readOwn(at("good")), readOwn(at("none")), readOwn(at("good/x"))]).toEqual([
    "text",
    undefined,
    undefined,
  ]);
  expect(readOwn(at("largest"))).toHaveLength(largestFileBytes);
  const found = ["large", "others", "link", "directory"].map((name) =>
    thrownBy(() => readOwn(at(name))),
  );
  expect(found).toEqual([
    refused("large", `it has ${largestFileBytes + 1} bytes`),
    refused("others", "others than its owner may write (mode 666)"),
    refused("link", "it is a symbolic link"),
    refused("directory", "it is no regular file"),
  ]);
});

test("replaceFile() puts a file in the place of a link, not of what it leads to", () => {
  writeFileSync(at("victim"), "old");
  symlinkSync(at("victim"), at("file"));
  replaceFile(at("file"), "new");
  expect([readFileSync(at("victim"), "utf8"), readOwn(at("file"))]).toEqual(["old", "new"]);
  expect(readdirSync(dir).toSorted()).toEqual(["file", "victim"]);
});

test("replaceFile() leaves nothing when it fails, and names the path", () => {
  mkdirSync(at("file/full"), { recursive: true });
  const found = thrownBy(() => replaceFile(at("file"), "new"));
  expect(found).toMatchObject({ code: 5, message: `${at("file")} cannot be written` });
  expect(readdirSync(dir)).toEqual(["file"]);
});

test("sweepTemporaries() takes what dead processes left, and what is old, and nothing else", () => {
  const dead = "4194305";
  const stale = [`.${dead}-abc.tmp`, `.backend.${dead}.tmp`, ".net,c1,eth0.json.tmp"];
  const kept = [
    `.${process.pid}-abc.tmp`,
    `.backend.${process.pid}.tmp`,
    ".net,c2,eth0.json.tmp",
    "backend.json",
    "x.tmp",
  ];
  for (const name of [...stale, ...kept]) writeFileSync(at(name), "");
  utimesSync(at(".net,c1,eth0.json.tmp"), 1, 1);
  utimesSync(at("x.tmp"), 1, 1);
  sweepTemporaries(dir);
  expect(readdirSync(dir).toSorted()).toEqual(kept.toSorted());
});
