// Records as files, in a directory of the test's own.
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type AttachmentRecord, recordName } from "../../src/attachment/record.ts";
import { renderRecord } from "../../src/attachment/record-text.ts";
import { openStore } from "../../src/attachment/store.ts";
import { version } from "../../src/version.ts";
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

test("removeThis() forgets the record that was read, and none that was written since", () => {
  const store = openStore(stateDir);
  expect(store.removeThis(someRecord)).toBe(true);
  store.write(someRecord);
  const read = store.read(key);
  store.write({ ...someRecord, state: "intended" });
  expect(read === undefined || store.removeThis(read)).toBe(false);
  expect(store.read(key)?.state).toBe("intended");
  expect(readdirSync(directory())).toEqual(["net,c0ffee,eth0.json"]);
  const now = store.read(key);
  expect(now === undefined || store.removeThis(now)).toBe(true);
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

test("ofContainer() and ofInode() give the records that can be read", () => {
  const store = openStore(stateDir);
  const [one, two] = [someRecord, { ...someRecord, ifName: "net1" }];
  const other = { ...someRecord, containerId: "c1", netns: { path: "/n", device: 4, inode: 1 } };
  for (const record of [one, two, other]) store.write(record);
  writeFileSync(join(directory(), "net,c0ffee,net2.json"), "{");
  writeFileSync(join(directory(), "net,c0ffee,net3.json"), renderRecord(someRecord));
  mkdirSync(join(directory(), "net,c0ffee,net4.json"));
  const names = (records: readonly AttachmentRecord[]) => records.map(recordName).toSorted();
  expect(names(store.ofContainer("c0ffee"))).toEqual(names([one, two]));
  expect(names(store.ofContainer("c1"))).toEqual(names([other]));
  expect(names(store.ofInode(someRecord.netns.inode))).toEqual(names([one, two]));
  expect(names(store.ofInode(1))).toEqual(names([other]));
});

test("read() takes no record for that of another attachment, whatever its file is called", () => {
  const store = openStore(stateDir);
  store.write({ ...someRecord, ifName: "net1" });
  renameSync(join(directory(), "net,c0ffee,net1.json"), file());
  expect(store.read(key)).toBe(undefined);
});

test("write() writes nothing that read() would not take back", () => {
  const store = openStore(stateDir);
  const ruleless = { ...someRecord, rulesets: [] };
  const large = { ...someRecord, backendReason: "x".repeat(1024 * 1024) };
  for (const record of [ruleless, large]) {
    expect(thrownBy(() => store.write(record))).toMatchObject({
      code: 5,
      message: "the record net,c0ffee,eth0.json could not be read again",
    });
  }
  expect(store.entries()).toEqual([]);
});

test("a state directory that others can write to is refused by everything", () => {
  const store = openStore(stateDir);
  store.write(someRecord);
  chmodSync(directory(), 0o777);
  const verbs = [
    () => store.read(key),
    () => store.write(someRecord),
    () => store.remove(key),
    () => store.entries(),
    () => store.prepare(),
  ];
  const message = `${directory()} is not taken for ours: others than its owner may write (mode 777)`;
  for (const verb of verbs) expect(thrownBy(verb)).toMatchObject({ code: 5, message });
});

test("moment() goes on, and names the boot", () => {
  const store = openStore(stateDir);
  const [one, two] = [store.moment(), store.moment()];
  expect(one.boot).toMatch(/^[0-9a-f-]{36}$/);
  expect(two.boot).toBe(one.boot);
  expect(two.sinceBootMs).toBeGreaterThanOrEqual(one.sinceBootMs);
});

test("lock() holds a netns in a directory of its own, and no other netns", async () => {
  const store = openStore(stateDir);
  const { netns } = someRecord;
  const [one, other] = [
    await store.lock(netns, () => 0),
    await store.lock({ ...netns, device: 5 }, () => 0),
  ];
  const held = readdirSync(join(stateDir, "locks")).map((name) => name.split(",")[0]);
  expect(held.toSorted()).toEqual(["4-4026532201", "5-4026532201"]);
  expect(statSync(join(stateDir, "locks")).mode & 0o777).toBe(0o700);
  await expect(openStore(stateDir).lock(netns, () => 0)).rejects.toMatchObject({
    message: "netns /run/netns/a is being worked on by another process",
  });
  for (const lock of [one, other]) lock.release();
  expect(readdirSync(join(stateDir, "locks"))).toEqual([]);
});

test("sweep() takes away what killed holders of locks left, also where there are no records", async () => {
  const store = openStore(stateDir);
  store.sweep();
  const lock = await store.lock(someRecord.netns, () => 0);
  lock.release();
  // From before this boot: it says that it was made 89 years after it.
  writeFileSync(join(stateDir, "locks", "4-1,zzzzzzzz-0a"), "");
  store.sweep();
  expect(readdirSync(join(stateDir, "locks"))).toEqual([]);
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

const later = JSON.stringify({ format: 3, version: "0.9.0", netns: { inode: 77 } });

test("a record of a later release is told by format and version, and left alone", () => {
  const store = openStore(stateDir);
  store.write({ ...someRecord, ifName: "net1" });
  writeFileSync(file(), later);
  const error = {
    name: "NewerRecordError",
    kind: "try-again",
    message: `the record net,c0ffee,eth0.json has format 3, of sluice 0.9.0; sluice ${version} reads formats up to 2`,
    details: "upgrade sluice on this node; the record and its rules are left as they are",
  };
  for (const read of [
    () => store.read(key),
    () => store.ofContainer("c0ffee"),
    () => store.ofInode(77),
  ]) {
    expect(read).toThrow(expect.objectContaining(error));
  }
  expect(store.ofInode(78)).toEqual([]);
  expect(store.ofContainer("other")).toEqual([]);
  store.removeNone(key);
  expect(store.removeThis(someRecord)).toBe(false);
  expect(readFileSync(file(), "utf8")).toBe(later);
});

test("removeNone() takes away what is no record, and leaves one that is", () => {
  const store = openStore(stateDir);
  store.removeNone(key);
  store.write(someRecord);
  store.removeNone(key);
  expect(store.read(key)).toEqual(someRecord);
  writeFileSync(file(), "{");
  writeFileSync(join(directory(), ".net,c0ffee,eth0.json.tmp"), "{");
  store.removeNone(key);
  expect(readdirSync(directory())).toEqual([]);
});
