// A section of the conf: what can be read is, whatever stands beside it.
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { readSection, shown } from "../../src/cni/section.ts";

const schema = z.object({
  name: z._default(z.string(), "none"),
  ports: z._default(z.array(z.union([z.number(), z.string()])), [80]),
  by: z.optional(z.record(z.string(), z.array(z.enum(["a", "b"])))),
});
const defaults = { name: "none", ports: [80] };

const rows: [when: string, given: object, values: object, faults: string[], unknown: string[]][] = [
  ["it is empty", {}, defaults, [], []],
  [
    "all is good",
    { name: "n", ports: [1, "2"], by: { x: ["b"] } },
    { name: "n", ports: [1, "2"], by: { x: ["b"] } },
    [],
    [],
  ],
  ["keys are unknown", { Name: "n", more: null }, defaults, [], ["s.Name", "s.more"]],
  [
    "one value is wrong",
    { name: 1, ports: [] },
    { name: "none", ports: [] },
    ["s.name: expected string, found 1"],
    [],
  ],
  [
    "a list is wrong in two entries, and another value as well",
    { ports: [{}, 80, true], name: null },
    defaults,
    [
      "s.name: expected string, found null",
      "s.ports.0: expected number or string, found {}",
      "s.ports.2: expected number or string, found true",
    ],
    [],
  ],
  [
    "a value is wrong deep inside",
    { by: { x: ["a"], y: ["c"] } },
    defaults,
    ['s.by.y.0: expected one of "a", "b", found "c"'],
    [],
  ],
];

test.each(rows)("readSection() reads what it can when %s", (...row) => {
  const [, given, values, faults, unknownKeys] = row;
  expect(readSection(schema, { ...given }, "s.")).toEqual({ values, faults, unknownKeys });
});

test("shown() cuts what is long", () => {
  expect([shown(undefined), shown("a"), shown("x".repeat(300))]).toEqual([
    "undefined",
    '"a"',
    `"${"x".repeat(199)}...`,
  ]);
});
