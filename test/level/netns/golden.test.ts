// How iptables-save prints the rules of every case, over both backends: test/golden. `vitest -u` at this level, and only
// here, records them anew; the pure level holds the builder against the same files.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { buildRuleset } from "../../../src/mesh/linkerd/ruleset.ts";
import { renderRestore } from "../../../src/netfilter/restore.ts";
import { backends } from "../../../src/netfilter/table.ts";
import { freshTransaction } from "../../../src/netfilter/transaction.ts";
import { type FamilyCase, familyCases, goldenFile } from "../../lab/case.ts";
import { meantBy } from "../../lab/meant.ts";
import { ownLines, restore, save } from "../../lab/states.ts";
import { named, test } from "./level.ts";

const golden = join(import.meta.dirname, "../../golden");

describe.for(backends.map((backend) => ({ backend })))("over $backend", ({ backend }) => {
  test.for(named(familyCases, ({ title }) => title))(
    "iptables-save prints the golden rules when the case is %s",
    async ([, familyCase], { attachment }) => {
      const place = { netns: attachment.netns, backend, family: familyCase.family };

      restore(place, restoreText(familyCase), "--noflush");

      const text = ownLines(save(place)).map((line) => `${line}\n`);
      await expect(text.join("")).toMatchFileSnapshot(join(golden, goldenFile(familyCase)));
    },
  );
});

test("test/golden holds one file for each case, and no other", () => {
  const names = familyCases.map(goldenFile);

  expect(readdirSync(golden).toSorted()).toStrictEqual(names.toSorted());
});

/** What ADD loads into a fresh netns for the case. */
function restoreText({ entry, family }: FamilyCase): string {
  const { intent } = meantBy(entry.linkerd);
  return renderRestore(freshTransaction(buildRuleset(intent, family)));
}
