// The text of a record's file: read back as it was written, and what is no record, or one of a later release.
import { expect, test } from "vitest";
import { parseRecord, readRecord, renderRecord } from "../../src/attachment/record-text.ts";
import { buildRulesets } from "../../src/mesh/linkerd/ruleset.ts";
import { someRecord } from "../fake/record.ts";
import { cases } from "../lab/case.ts";

test.each(cases)("parseRecord() takes back what renderRecord() gives: $name", (entry) => {
  const rulesets = buildRulesets(entry.intent, entry.families);
  const record = { ...someRecord, intent: entry.intent, rulesets };
  expect(parseRecord(renderRecord(record))).toEqual(record);
});

test("renderRecord() ends with one newline", () => {
  expect(renderRecord(someRecord)).toBe(`${JSON.stringify(someRecord, null, 2)}\n`);
});

const whole = renderRecord(someRecord);
const changed = (change: object) => JSON.stringify({ ...someRecord, ...change });
const [ruleset] = someRecord.rulesets;
const table = { name: "nat", chains: [], placed: [] };
const withTable = (change: object) =>
  changed({ rulesets: [{ ...ruleset, tables: [{ ...table, ...change }] }] });

const broken: [when: string, text: string][] = [
  ["it is empty", ""],
  ["it is cut short", whole.slice(0, -10)],
  ["it is no object", "[]"],
  ["it has no format", changed({ format: undefined })],
  ["its format is no number", changed({ format: "3" })],
  ["its format is none of ours", changed({ format: 0 })],
  ["it says that it is of format 1", changed({ format: 1 })],
  ["its state is unknown", changed({ state: "done" })],
  ["its backend is unknown", changed({ backend: "bpf" })],
  ["its inode is a string", changed({ netns: { path: "/n", device: 4, inode: "1" } })],
  ["its intent is none", changed({ intent: "all" })],
  ["its rulesets are missing", changed({ rulesets: undefined })],
  ["it has no ruleset", changed({ rulesets: [] })],
  ["a family is unknown", changed({ rulesets: [{ ...ruleset, family: "ipx" }] })],
  ["a table is unknown", withTable({ name: "filter" })],
  ["a hook is unknown", withTable({ placed: [{ hook: "INGRESS", rule: "" }] })],
  ["a setting has no name", changed({ settings: [{ value: "1" }] })],
];

test.each(broken)("readRecord() takes the text for no record when %s", (_, text) => {
  expect(readRecord(text)).toEqual({ kind: "none" });
  expect(parseRecord(text)).toBe(undefined);
});

test("readRecord() reads over what a later version adds", () => {
  expect(readRecord(changed({ added: 1 }))).toEqual({ kind: "record", record: someRecord });
});

test("readRecord() takes back what is not in every record", () => {
  const stale = { name: "mangle", chains: ["OLD"], placed: ["-A PREROUTING -j OLD"] } as const;
  const record = {
    ...someRecord,
    ...{ boot: "first", sinceBootMs: 12.345 },
    rulesets: someRecord.rulesets.map((one) => {
      return { ...one, tables: [...one.tables, { ...table, name: "mangle" as const, stale }] };
    }),
    open: ["ipv6" as const],
    settings: [
      { name: "net.a", value: "1", before: "2" },
      { name: "net.b", before: "3" },
    ],
    tools: [{ family: "ipv4" as const, restore: "/r", save: "/s", version: "1.8.9" }],
    warnings: ["beware"],
  };
  expect(readRecord(renderRecord(record))).toEqual({ kind: "record", record });
});

const newer: [text: string, format: number, version: string][] = [
  [changed({ format: 3, version: "0.9.0" }), 3, "0.9.0"],
  ['{"format":4}', 4, "which it does not say"],
  ['{"format":5,"version":7,"rulesets":{}}', 5, "which it does not say"],
];

test.each(newer)("readRecord() knows a record of a later release: %s", (text, format, version) => {
  expect(readRecord(text)).toEqual({ kind: "newer", newer: { format, version } });
  expect(parseRecord(text)).toBe(undefined);
});
