import { expect, test } from "vitest";
import type { Result } from "./result.ts";
import { markdown, resultTable, targetTable } from "./table.ts";

const summary = (ms: number) => ({
  runs: 3,
  wallMs: { min: ms, median: ms, p95: ms },
  cpuMs: { min: ms, median: ms, p95: ms },
  rssMb: 50.4,
});

const result = (way: string, action: string, ms: number): Result => ({
  way,
  action,
  families: action.startsWith("node") ? "" : "dual",
  backend: action.startsWith("node") ? "" : "nft",
  source: way === "sluice" ? "api" : "",
  summary: summary(ms),
});

test("markdown() puts numbers at the right and widens columns", () => {
  expect(markdown(["what", "ms"], [["a long name", "9.5"], ["b"]])).toBe(
    [
      "| what        |  ms |",
      "|-------------|----:|",
      "| a long name | 9.5 |",
      "| b           |     |",
      "",
    ].join("\n"),
  );
});

test("resultTable() brings the ways of one action together, and holds them against the least and the init container", () => {
  const table = resultTable([
    result("sluice", "ADD, new pod", 30),
    result("bare", "node -e 0", 20),
    result("bare", "nsenter + restore", 4),
    result("init container", "ADD, new pod", 60),
  ]);
  expect(table.split("\n").map((line) => line.replaceAll(/ +/g, " "))).toEqual([
    "| what | pod | backend | pod's facts | way | ms | p95 | CPU ms | RSS MB | × least | × init |",
    expect.stringMatching(/^\|-/),
    "| ADD, new pod | dual | nft | api | sluice | 30.0 | 30.0 | 30.0 | 50 | 1.25 | 0.50 |",
    "| ADD, new pod | dual | nft | | init container | 60.0 | 60.0 | 60.0 | 50 | 2.50 | 1.00 |",
    "| node -e 0 | | | | bare | 20.0 | 20.0 | 20.0 | 50 | | |",
    "| nsenter + restore | dual | nft | | bare | 4.0 | 4.0 | 4.0 | 50 | | |",
    "",
  ]);
});

test.for([
  { value: 1.3, limit: 1.3, reached: "yes" },
  { value: 1.31, limit: 1.3, reached: "no" },
  { value: undefined, limit: 1.3, reached: "" },
])("targetTable() says whether $value is within $limit", ({ value, limit, reached }) => {
  const [, , line = ""] = targetTable([{ name: "x", value, limit }]).split("\n");
  expect(line.split("|").map((cell) => cell.trim())).toEqual([
    "",
    "x",
    value === undefined ? "" : String(value),
    String(limit),
    reached,
    "",
  ]);
});
