// Transactions as text for iptables-restore.
import { expect, test } from "vitest";
import type { Step } from "../../src/netfilter/plan.ts";
import { renderRestore } from "../../src/netfilter/restore.ts";

test("renderRestore() renders each kind of step as one line of one table", () => {
  const steps: readonly Step[] = [
    { do: "create-chain", chain: "A" },
    { do: "reset-chain", chain: "B" },
    { do: "append", rule: "-A A -p tcp -j RETURN" },
    { do: "insert", rule: '-A OUTPUT -m comment --comment "-A" -j A' },
    { do: "delete", rule: "-A OUTPUT -j B" },
    { do: "delete-chain", chain: "B" },
  ];
  expect(renderRestore([{ table: "nat", steps }])).toBe(`*nat
-N A
:B - [0:0]
-A A -p tcp -j RETURN
-I OUTPUT -m comment --comment "-A" -j A
-D OUTPUT -j B
-X B
COMMIT
`);
});

test("renderRestore() renders a commit for each table, in the transaction's order", () => {
  const [raw, nat] = ["A", "B"].map((chain) => [{ do: "create-chain", chain }] as const);
  const text = renderRestore([
    { table: "raw", steps: raw ?? [] },
    { table: "nat", steps: nat ?? [] },
  ]);
  expect(text).toBe("*raw\n-N A\nCOMMIT\n*nat\n-N B\nCOMMIT\n");
});

test("renderRestore() renders no text where there is nothing to do", () => {
  expect(renderRestore([])).toBe("");
});
