// Which records are about a netns, which is the later one, and their names.
import { expect, test } from "vitest";
import {
  type AttachmentKey,
  type AttachmentRecord,
  isAbout,
  isLater,
  latestOf,
  parseRecordName,
  recordName,
} from "../../src/attachment/record.ts";
import { someRecord } from "../fake/record.ts";

const place = { device: 4, inode: 4_026_532_201, boot: "first" };
const about: [when: string, change: object, expected: boolean][] = [
  ["0.1.0 wrote it", {}, true],
  ["it is of this boot", { boot: "first" }, true],
  ["it is of another boot", { boot: "second" }, false],
  ["the number is another", { boot: "first", netns: { path: "/", device: 4, inode: 1 } }, false],
  ["the device is another", { netns: { path: "/", device: 5, inode: place.inode } }, false],
];

test.each(about)("isAbout() knows the netns when %s", (_, change, expected) => {
  expect(isAbout({ ...someRecord, ...change }, place)).toBe(expected);
});

const at = (boot: string, sinceBootMs: number, time: string): AttachmentRecord => {
  return { ...someRecord, boot, sinceBootMs, time };
};
const orders: [when: string, earlier: AttachmentRecord, later: AttachmentRecord][] = [
  ["the clock was set back in between", at("first", 1, "2026-12-01"), at("first", 2, "2026-11-30")],
  ["they are of two boots", at("first", 9, "2026-11-30"), at("second", 1, "2026-12-01")],
  ["0.1.0 wrote one of them", { ...someRecord, time: "2026-11-29" }, at("first", 1, "2026-11-30")],
];

test.each(orders)("isLater() and latestOf() know the later one when %s", (_, earlier, later) => {
  expect([isLater(later, earlier), isLater(earlier, later)]).toEqual([true, false]);
  expect([latestOf([earlier, later]), latestOf([later, earlier])]).toEqual([later, later]);
});

test("latestOf() none is none", () => {
  expect(latestOf([])).toBe(undefined);
});

const keys: [key: AttachmentKey, name: string][] = [
  [{ network: "net", containerId: "c0ffee", ifName: "eth0" }, "net,c0ffee,eth0.json"],
  [{ network: "a.b-c", containerId: "a.json", ifName: "net1,x" }, "a.b-c,a.json,net1,x.json"],
  [{ network: "n", containerId: "c", ifName: ".json" }, "n,c,.json.json"],
];

test.each(keys)("recordName() of %j is %s, and parseRecordName() finds back", (key, name) => {
  expect(recordName(key)).toBe(name);
  expect(parseRecordName(name)).toEqual(key);
});

const others = [
  "",
  "x",
  "a,b.json",
  "a,b,.json",
  ",b,c.json",
  ".a,b,c.json.tmp",
  ".a,b,c.json",
  "a,b,c.txt",
];

test.each(others)("parseRecordName() knows that %j is no record's", (name) => {
  expect(parseRecordName(name)).toBe(undefined);
});
