// What is kept of warnings: a few, short, in printable characters, and nothing secret.
import { expect, test } from "vitest";
import { hearing } from "../../src/upkeep/heard.ts";

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

test("hearing() passes everything on, and keeps warnings alone", () => {
  const said: unknown[] = [];
  const told = (fields: object, message: string) => void said.push([message, fields]);
  const { log, warnings } = hearing({ debug: told, info: told, warn: told, error: told });
  log.info({ a: 1 }, "one");
  log.warn({ pod: { name: "web" }, err: new Error("why"), family: "ipv6" }, "two");
  log.warn({ pod: { name: "web" } }, "three");
  expect(said).toEqual([
    ["one", { a: 1 }],
    ["two", { pod: { name: "web" }, err: new Error("why"), family: "ipv6" }],
    ["three", { pod: { name: "web" } }],
  ]);
  expect(warnings).toEqual(['two: why: {"family":"ipv6"}', "three"]);
});

/** A logger whose words are methods, as pino's are. */
class Methods {
  readonly said: string[] = [];
  debug(_: object, message: string): void {
    this.said.push(message);
  }
  info(_: object, message: string): void {
    this.said.push(message);
  }
  warn(_: object, message: string): void {
    this.said.push(message);
  }
  error(_: object, message: string): void {
    this.said.push(message);
  }
}

test("hearing() works with a logger that is an object of its own kind", () => {
  const methods = new Methods();
  const { log } = hearing(methods);
  for (const level of ["debug", "info", "warn", "error"] as const) log[level]({}, level);
  expect(methods.said).toEqual(["debug", "info", "warn", "error"]);
});

test("hearing() keeps 20 warnings of 300 characters, each once, with those known before", () => {
  const { log, warnings } = hearing(silent, ["known"]);
  for (let i = 0; i < 30; i += 1) log.warn({}, `${i % 25} ${"x".repeat(1_000)}`);
  expect(warnings.length).toBe(20);
  expect(new Set(warnings).size).toBe(20);
  expect(warnings[0]).toBe("known");
  expect(Math.max(...warnings.map((one) => one.length))).toBeLessThanOrEqual(300);
});

test("hearing() keeps no token, and nothing that is not printable", () => {
  const { log, warnings } = hearing(silent);
  log.warn({ said: "Authorization: Bearer abc.def.ghi" }, "a\nline\u202e");
  expect(warnings.join()).not.toContain("abc.def");
  expect(warnings.join()).toMatch(/^[\x20-\x7e]+$/);
});
