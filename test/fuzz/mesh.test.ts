// Any conf and any annotations: either a reason why not, or an intent that our own schema reads back and whose rules hold
// nothing but our own words.
import fc from "fast-check";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { readSettings } from "../../src/conf/reader.ts";
import { problemsOf } from "../../src/conf/settings.ts";
import { applyAnnotations } from "../../src/mesh/linkerd/annotation.ts";
import { type Intent, intentSchema } from "../../src/mesh/linkerd/intent.ts";
import { configKeys, configPrefix } from "../../src/mesh/linkerd/names.ts";
import { buildRulesets } from "../../src/mesh/linkerd/ruleset.ts";
import { families } from "../../src/netfilter/table.ts";
import { ledChains } from "../lab/rulesets.ts";
import { anyConf } from "./arbitrary/conf.ts";
import { intent } from "./arbitrary/intent.ts";
import { anyText } from "./arbitrary/text.ts";
import { holds, timeoutMs } from "./budget.ts";
import { ownWords } from "./own-words.ts";

const part = 0.03;

/** Sentences for log and stdout are of one line each, and not long. */
const oneLine = /^\P{Cc}{1,3000}$/u;

/** Those about a pod's annotations, whose author may be anyone, are of plain characters as well. */
const plain = /^[\x20-\x7e]{1,3000}$/;

test("any conf is an intent or a reason why not", { timeout: timeoutMs }, async () => {
  const property = fc.property(anyConf, (document) => {
    const settings = readSettings(document);
    const { families: wanted, mesh, notes } = settings;
    const sentences = [...problemsOf(settings), ...notes];
    expect(sentences.filter((sentence) => !oneLine.test(sentence))).toEqual([]);
    if (mesh.intentOf === undefined) expect(mesh.problems).not.toEqual([]);
    else judge(z.parse(intentSchema, mesh.intentOf(wanted).intent.words));
  });
  await holds(property, { part });
});

test("any annotations are an intent and reasons why not", { timeout: timeoutMs }, async () => {
  const given = fc.record({
    conf: intent,
    annotations: fc.dictionary(
      fc.oneof(
        { weight: 5, arbitrary: fc.constantFrom(...configKeys.map((key) => configPrefix + key)) },
        { weight: 1, arbitrary: anyText },
      ),
      anyText,
      { maxKeys: 4 },
    ),
    denied: fc.subarray([...configKeys]),
    dropEntries: fc.boolean(),
    apiServerPorts: fc.constantFrom([], [{ from: 443, to: 443 }]),
  });
  const property = fc.property(given, ({ conf, annotations, ...policy }) => {
    const pod = { annotations, namespaceAnnotations: {}, spec: undefined };
    const { intent: found, refusals, notes } = applyAnnotations(conf, pod, policy);
    judge(found);
    const sentences = [...refusals.map(({ problem }) => problem), ...notes];
    expect(sentences.filter((sentence) => !plain.test(sentence))).toEqual([]);
  });
  await holds(property, { part });
});

function judge(found: Intent): void {
  expect(z.parse(intentSchema, JSON.parse(JSON.stringify(found)))).toEqual(found);
  const lines = buildRulesets(found, families).flatMap((ruleset) =>
    ledChains(ruleset).flatMap(({ jump, rules }) => [jump, ...rules]),
  );
  expect(lines.filter((line) => !ownWords.test(line))).toEqual([]);
}
