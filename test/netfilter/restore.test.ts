// Transactions as text for iptables-restore.
import { expect, test } from "vitest";
import { renderRestore } from "../../src/netfilter/restore.ts";

test("renderRestore() renders each kind of step as one line of one table", () => {
  const text = renderRestore([
    { do: "create-chain", chain: "A" },
    { do: "reset-chain", chain: "B" },
    { do: "append", rule: "-A A -p tcp -j RETURN" },
    { do: "insert", rule: '-A OUTPUT -m comment --comment "-A" -j A' },
    { do: "delete", rule: "-A OUTPUT -j B" },
    { do: "delete-chain", chain: "B" },
  ]);
  expect(text).toBe(`*nat
-N A
:B - [0:0]
-A A -p tcp -j RETURN
-I OUTPUT -m comment --comment "-A" -j A
-D OUTPUT -j B
-X B
COMMIT
`);
});

test("renderRestore() renders a transaction without steps as a table without lines", () => {
  expect(renderRestore([])).toBe("*nat\nCOMMIT\n");
});
