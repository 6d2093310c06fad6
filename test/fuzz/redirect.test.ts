// Ports, subnets and rules: what is written reads back as the same, and holds nothing but our own words.
import fc from "fast-check";
import { expect, test } from "vitest";
import { buildRulesets } from "../../src/mesh/linkerd/ruleset.ts";
import { families } from "../../src/netfilter/table.ts";
import { mergeCidrs, parseCidr } from "../../src/redirect/cidr.ts";
import { mergePorts, type PortRange, packPorts, parsePorts } from "../../src/redirect/port.ts";
import { ledChains } from "../lab/rulesets.ts";
import { cidr, intent, portRange, ports } from "./arbitrary/intent.ts";
import { anyText } from "./arbitrary/text.ts";
import { holds, timeoutMs } from "./budget.ts";
import { ownWords } from "./own-words.ts";

const part = 0.01;

function setOf(ranges: readonly PortRange[]): number[] {
  const found = new Set<number>();
  for (const { from, to } of ranges) for (let one = from; one <= to; one++) found.add(one);
  return [...found].toSorted((a, b) => a - b);
}

const spelt = ({ from, to }: PortRange) => (from === to ? `${from}` : `${from}-${to}`);

test("ports read back as they were written", { timeout: timeoutMs }, async () => {
  const property = fc.property(fc.array(portRange, { minLength: 1, maxLength: 8 }), (ranges) => {
    expect(parsePorts(ranges.map(spelt).join(" , "))).toEqual(ranges);
  });
  await holds(property, { part });
});

test("merged ports are the same ports, sorted and apart", { timeout: timeoutMs }, async () => {
  const property = fc.property(fc.array(portRange, { maxLength: 8 }), (ranges) => {
    const merged = mergePorts(ranges);
    expect(setOf(merged)).toEqual(setOf(ranges));
    expect(mergePorts(merged)).toEqual(merged);
    expect(merged.every(({ from }, i) => from > (merged[i - 1]?.to ?? -1) + 1)).toBe(true);
  });
  await holds(property, { part });
});

test("packed ports are the same ports, fifteen slots a rule", { timeout: timeoutMs }, async () => {
  const property = fc.property(ports, (ranges) => {
    const packs = packPorts(ranges).map((pack) => pack.split(","));
    const read = packs.flat().map((word) => word.split(":").map(Number));
    const found = read.map(([from = 0, to = from]) => ({ from, to }));
    expect(setOf(found)).toEqual(setOf(ranges));
    const slots = packs.map((words) => words.join(":").split(":").length);
    expect(slots.every((count) => count <= 15)).toBe(true);
  });
  await holds(property, { part });
});

test("a subnet's canonical text is its own canonical text", { timeout: timeoutMs }, async () => {
  const property = fc.property(cidr, (one) => {
    expect(parseCidr(one.text)).toEqual(one);
    expect(one.text).toMatch(/^[0-9a-f:.]+\/\d+$/);
  });
  await holds(property, { part });
});

test("merged subnets do not depend on their order", { timeout: timeoutMs }, async () => {
  const property = fc.property(fc.array(cidr, { maxLength: 8 }), (list) => {
    expect(mergeCidrs(list.toReversed())).toEqual(mergeCidrs(list));
  });
  await holds(property, { part });
});

test("whatever is read as ports or subnets is made of our own words", {
  timeout: timeoutMs,
}, async () => {
  const list = fc.array(anyText, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(","));
  const property = fc.property(list, (text) => {
    const [ranges, subnet] = [readOrNot(() => parsePorts(text)), readOrNot(() => parseCidr(text))];
    expect(packPorts(mergePorts(ranges ?? [])).join(",")).toMatch(/^[0-9:,]*$/);
    expect(subnet?.text ?? "").toMatch(/^([0-9a-f:.]+\/\d+)?$/);
  });
  await holds(property, { part });
});

test("rules hold nothing but our own words", { timeout: timeoutMs }, async () => {
  const property = fc.property(intent, (one) => {
    const rulesets = buildRulesets(one, families);
    const lines = rulesets.flatMap((ruleset) =>
      ledChains(ruleset).flatMap(({ jump, rules }) => [jump, ...rules]),
    );
    expect(lines.filter((line) => !ownWords.test(line))).toEqual([]);
  });
  await holds(property, { part });
});

function readOrNot<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    // Refused, which is as good here.
    return undefined;
  }
}
