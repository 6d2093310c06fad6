import { expect, test } from "vitest";
import { type Label, nameOf } from "./case.ts";
import { leastOf, type Result, toInit, toLeast } from "./result.ts";
import { targetsOf } from "./targets.ts";

const of = (label: Partial<Label>, ms: number, rssMb = 50): Result => ({
  way: "bare",
  action: "",
  families: "",
  backend: "",
  source: "",
  ...label,
  summary: {
    runs: 1,
    wallMs: { min: ms, median: ms, p95: ms },
    cpuMs: { min: ms, median: ms, p95: ms },
    rssMb,
  },
});

const nft = (families: string) => ({ families, backend: "nft" });
const add = (families: string, source = "annotations") => ({
  ...nft(families),
  source,
  way: "sluice",
  action: "ADD, new pod",
});

const results: Result[] = [
  of({ action: "node -e 0" }, 20),
  of({ ...nft("ipv4"), action: "nsenter + restore" }, 3),
  of({ ...nft("dual"), action: "nsenter + restore" }, 5),
  of({ ...nft("dual"), action: "nsenter + save" }, 4),
  of(add("ipv4"), 28),
  of(add("dual"), 30),
  of(add("dual", "api"), 42.5, 60),
  of({ ...add("dual"), action: "CHECK" }, 30),
  of({ way: "sluice", action: "VERSION" }, 21),
  of({ ...nft("ipv4"), way: "init container", action: "ADD, new pod" }, 25),
  of({ ...nft("dual"), way: "init container", action: "ADD, new pod" }, 50),
  of({ way: "other", action: "VERSION" }, 1, 900),
];

test("nameOf() leaves out what makes no difference", () => {
  expect(nameOf({ ...add("dual"), source: "" })).toBe("sluice ADD, new pod dual nft");
});

test.for([
  { label: add("dual"), least: 25 },
  { label: { ...add("dual"), action: "ADD again" }, least: 25 },
  { label: { ...add("dual"), action: "CHECK" }, least: 24 },
  { label: { ...add("dual"), action: "DEL" }, least: 25 },
  { label: { ...add(""), backend: "", source: "", action: "VERSION" }, least: 20 },
  { label: { ...add("dual"), action: "50 ADDs at once" }, least: undefined },
  { label: { ...add("dual"), backend: "legacy" }, least: undefined },
])("leastOf() $label.action $label.backend is $least", ({ label, least }) => {
  expect(leastOf(results, label)).toBe(least);
});

test("toLeast() and toInit() compare medians", () => {
  expect(toLeast(results, add("dual"))).toBe(1.2);
  expect(toInit(results, add("dual"))).toBe(0.6);
  expect(toInit(results, add("ipv6"))).toBeUndefined();
});

test("targetsOf() finds each figure, and leaves open what was not measured", () => {
  const counted = { ipv4: { children: 1, all: 4 }, dual: { children: 1, all: 7 } };
  const found = targetsOf(results, counted, 50).map(({ name, value }) => [name, value]);
  expect(Object.fromEntries(found)).toEqual({
    "ADD ipv4: × (node + restore)": 1.22,
    "ADD dual: × (node + restore)": 1.2,
    "ADD ipv4: × init container": 1.12,
    "ADD dual: × init container": 0.6,
    "ADD ipv4: ms more with the API": undefined,
    "ADD dual: ms more with the API": 12.5,
    "CHECK dual: × (node + saves)": 1.25,
    "DEL, no record: × node": undefined,
    "VERSION: × node": 1.05,
    "50 ADDs at once: × init container": undefined,
    "peak RSS, MB": 60,
    "ADD ipv4: children": 1,
    "ADD ipv4: processes in all": 4,
    "ADD dual: children": 1,
    "ADD dual: processes in all": 7,
  });
});
