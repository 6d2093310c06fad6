// The record's text and name.
import { expect, test } from "vitest";
import {
  type AttachmentKey,
  parseRecord,
  parseRecordName,
  recordName,
  renderRecord,
} from "../../src/attachment/record.ts";
import { buildRulesets } from "../../src/redirect/ruleset.ts";
import { someRecord } from "../fake/record.ts";
import { cases } from "../lab/case.ts";

test.each(cases)("parseRecord() takes back what renderRecord() gives: $name", ({ intent }) => {
  const rulesets = buildRulesets(intent).map(({ family, chains }) => ({
    family,
    chains: chains.map(({ rules, ...own }) => ({ ...own, rules: [...rules] })),
  }));
  const record = { ...someRecord, intent, rulesets };
  expect(parseRecord(renderRecord(record))).toEqual(record);
});

test("renderRecord() ends with one newline", () => {
  expect(renderRecord(someRecord)).toBe(`${JSON.stringify(someRecord, null, 2)}\n`);
});

const whole = renderRecord(someRecord);
const changed = (change: object) => JSON.stringify({ ...someRecord, ...change });
const broken: [when: string, text: string][] = [
  ["it is empty", ""],
  ["it is cut short", whole.slice(0, -10)],
  ["it is no object", "[]"],
  ["it is of another format", changed({ format: 2 })],
  ["it has no format", changed({ format: undefined })],
  ["its backend is unknown", changed({ backend: "bpf" })],
  ["its inode is a string", changed({ netns: { path: "/n", device: 4, inode: "1" } })],
  ["its intent is none", changed({ intent: { ...someRecord.intent, inboundPort: 0 } })],
  ["its rulesets are missing", changed({ rulesets: undefined })],
  [
    "a hook is unknown",
    changed({
      rulesets: [{ family: "ipv4", chains: [{ name: "A", hook: "INPUT", jump: "", rules: [] }] }],
    }),
  ],
];

test.each(broken)("parseRecord() takes the text for no record when %s", (_, text) => {
  expect(parseRecord(text)).toBe(undefined);
});

test("parseRecord() reads over what a later version adds", () => {
  expect(parseRecord(changed({ added: 1 }))).toEqual(someRecord);
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
