// Records as files, in a directory of the test's own.
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { noKnowledge } from "../../src/attachment/knowledge.ts";
import { recordName } from "../../src/attachment/record.ts";
import { openStore } from "../../src/attachment/store.ts";
import { someRecord } from "../fake/record.ts";
import { thrownBy } from "../fake/thrown.ts";

let stateDir = "";
const directory = () => join(stateDir, "attachments");
const file = () => join(directory(), recordName(someRecord));
const key = { network: "net", containerId: "c0ffee", ifName: "eth0" };

beforeEach(() => {
  stateDir = join(mkdtempSync(join(tmpdir(), "sluice-")), "state");
});

afterEach(() => rmSync(join(stateDir, ".."), { recursive: true }));

test("openStore() makes nothing before it is needed", () => {
  const store = openStore(stateDir);
  expect(store.read(key)).toBe(undefined);
  expect(store.entries()).toEqual([]);
  expect(store.knowledge()).toEqual(noKnowledge);
  store.remove(key);
  expect(thrownBy(() => statSync(stateDir))).toMatch(/^Error: ENOENT/);
});

test("write() keeps one file, for root only, that read() takes back", () => {
  const store = openStore(stateDir);
  store.write(someRecord);
  expect(store.read(key)).toEqual(someRecord);
  expect(readdirSync(directory())).toEqual(["net,c0ffee,eth0.json"]);
  expect([statSync(directory()).mode & 0o777, statSync(file()).mode & 0o777]).toEqual([
    0o700, 0o600,
  ]);
});

test("write() puts the new record in the place of the old one", () => {
  const store = openStore(stateDir);
  store.write(someRecord);
  const legacy = { ...someRecord, backend: "legacy" } as const;
  store.write(legacy);
  expect(store.read(key)).toEqual(legacy);
  expect(readdirSync(directory())).toEqual(["net,c0ffee,eth0.json"]);
});

test("read() gives nothing when the record is another attachment's", () => {
  const store = openStore(stateDir);
  store.write(someRecord);
  const others = [{ network: "other" }, { containerId: "c0" }, { ifName: "eth1" }];
  expect(others.map((other) => store.read({ ...key, ...other }))).toEqual(
    others.map(() => undefined),
  );
});

test("read() gives nothing when the file is broken", () => {
  const store = openStore(stateDir);
  store.write(someRecord);
  writeFileSync(file(), "{");
  expect(store.read(key)).toBe(undefined);
});

test("read() gives nothing when the name is longer than any file's", () => {
  expect(openStore(stateDir).read({ ...key, network: "n".repeat(300) })).toBe(undefined);
});

test("remove() forgets the record, and what a killed writer left of it", () => {
  const store = openStore(stateDir);
  store.write(someRecord);
  writeFileSync(join(directory(), ".net,c0ffee,eth0.json.tmp"), "{");
  store.remove(key);
  store.remove(key);
  expect(readdirSync(directory())).toEqual([]);
});

test("remove() takes a path that cannot be for nothing to forget", () => {
  writeFileSync(stateDir, "");
  openStore(stateDir).remove(key);
  openStore(`${stateDir}x`).remove({ ...key, network: "n".repeat(300) });
});

test("entries() tells each record's attachment and time, also when it cannot be read", () => {
  const store = openStore(stateDir);
  store.write(someRecord);
  store.write({ ...someRecord, ifName: "net1" });
  writeFileSync(join(directory(), "net,broken,eth0.json"), "{");
  writeFileSync(join(directory(), ".net,c0ffee,eth0.json.tmp"), "{");
  writeFileSync(join(directory(), "README"), "");
  for (const name of readdirSync(directory())) utimesSync(join(directory(), name), 1, 1.5);
  const entry = (containerId: string, ifName: string) => ({
    key: { network: "net", containerId, ifName },
    writtenMs: 1_500,
  });
  const byText = (a: object, b: object) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);
  expect(store.entries().toSorted(byText)).toEqual([
    entry("broken", "eth0"),
    entry("c0ffee", "eth0"),
    entry("c0ffee", "net1"),
  ]);
});

test("keepKnowledge() keeps one file for this boot", () => {
  const store = openStore(stateDir);
  store.keepKnowledge({ proven: [{ backend: "nft", family: "ipv4" }] });
  expect(openStore(stateDir).knowledge()).toEqual({ proven: [{ backend: "nft", family: "ipv4" }] });
  expect(readdirSync(stateDir).toSorted()).toEqual(["attachments", "backend.json"]);
});

test("prepare() leaves nothing but the directory", () => {
  openStore(stateDir).prepare();
  expect(readdirSync(directory())).toEqual([]);
});

test("prepare() throws when the directory cannot be made", () => {
  mkdirSync(stateDir);
  writeFileSync(directory(), "");
  expect(thrownBy(() => openStore(stateDir).prepare())).toMatch(/^Error: EEXIST/);
});
