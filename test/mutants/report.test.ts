import { expect, test } from "vitest";
import { renderReport } from "./report.ts";

const mutant = (status: string, line: number, replacement?: string) => ({
  id: String(line),
  mutatorName: "BlockStatement",
  ...(replacement === undefined ? {} : { replacement }),
  status,
  location: { start: { line, column: 3 }, end: { line, column: 9 } },
});

test("renderReport() names what was not noticed, and counts by folder", () => {
  const report = {
    files: {
      "src/cni/args.ts": {
        mutants: [mutant("Killed", 1), mutant("Survived", 2, "{\n    a;\n  }")],
      },
      "src/cni/conf.ts": { mutants: [mutant("Timeout", 3), mutant("RuntimeError", 4)] },
      "src/netfilter/iptables/script.ts": {
        mutants: [mutant("NoCoverage", 15, "true"), mutant("NoCoverage", 5)],
      },
    },
  };
  expect(renderReport(report)).toBe(`src/cni/args.ts:2:3 no test fails: BlockStatement -> { a; }
src/netfilter/iptables/script.ts:5:3 no test comes here: BlockStatement ->${" "}
src/netfilter/iptables/script.ts:15:3 no test comes here: BlockStatement -> true

| folder | killed | of | % |
|---|---|---|---|
| src/cni | 2 | 3 | 67 |
| src/netfilter/iptables | 0 | 2 | 0 |

killed 2 of 5 mutants (40 %)
`);
});

test("renderReport() refuses a report of another form", () => {
  expect(() => renderReport({ files: { "src/a.ts": {} } })).toThrow("mutants");
});
