// Rules of Linkerd's own tools in the place of ours: those that linkerd-init wrote, as recorded, and what is almost them.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { buildRuleset } from "../../../src/mesh/linkerd/ruleset.ts";
import { standFor } from "../../../src/mesh/linkerd/stand-for.ts";
import { compare } from "../../../src/netfilter/compare.ts";
import { parseSave } from "../../../src/netfilter/save.ts";
import { leastIntent } from "../../lab/case.ts";
import { withNat } from "../../lab/rulesets.ts";

const port = (from: number, to = from) => ({ from, to });
const ruleset = buildRuleset(
  {
    ...leastIntent,
    excludeInbound: [port(4190, 4191), port(4567, 4568)],
    excludeOutbound: [port(4567, 4568)],
  },
  "ipv4",
);
const saved = (state: string) =>
  readFileSync(join(import.meta.dirname, `../../fixture/linkerd-init-${state}.save`), "utf8");
const kindsOf = (text: string) =>
  compare(ruleset, withNat(parseSave(text)), standFor).map(({ kind, chain }) => `${kind} ${chain}`);

// As a newer linkerd-init spells the same: in the order of its flags, and one rule for each 15 ports.
const complete = saved("complete")
  .replace("--dports 4190,4191,4567,4568", "--dports 4568,4191,4190,4567")
  .replaceAll(/\/1661306970/g, "");

test("complete rules of linkerd-init are no drift, however it packed the ports", () => {
  expect(kindsOf(saved("complete"))).toEqual([]);
  expect(kindsOf(complete)).toEqual([]);
});

test("its interrupted rules lack their jump, as ours would", () => {
  expect(kindsOf(saved("interrupted"))).toEqual(["missing-jump OUTPUT"]);
});

const damages: [what: string, text: string, kinds: string[]][] = [
  [
    "another port",
    complete.replace("4568,4191", "4569,4191"),
    ["missing-rule PROXY_INIT_REDIRECT", "extra-rule PROXY_INIT_REDIRECT"],
  ],
  [
    "another user",
    complete.replace("--uid-owner 2102", "--uid-owner 2103"),
    ["missing-rule PROXY_INIT_OUTPUT", "extra-rule PROXY_INIT_OUTPUT"],
  ],
  [
    "no exemption of the proxy",
    complete.replace(/^-A PROXY_INIT_OUTPUT -m owner.*\n/m, ""),
    ["missing-rule PROXY_INIT_OUTPUT"],
  ],
  [
    "a rule of another kind",
    complete.replace(/^(-A PROXY_INIT_OUTPUT -p tcp )(.*REDIRECT.*)$/m, "$1-j ACCEPT\n$1$2"),
    ["extra-rule PROXY_INIT_OUTPUT"],
  ],
];

test.each(damages)("its rules are drift with %s", (_, text, kinds) => {
  expect(kindsOf(text)).toEqual(kinds);
});

test("rules without its marks are held against ours to the letter", () => {
  expect(kindsOf(complete.replaceAll("proxy-init/", "sluice/"))).toEqual([
    "missing-rule PROXY_INIT_REDIRECT",
    "extra-rule PROXY_INIT_REDIRECT",
  ]);
});
