// Pods of Linkerd's own injector: from their annotations our rules mean what the real linkerd-init wrote, or a table of
// lab/injected.ts says why not and what there is instead.
import { expect, test } from "vitest";
import { type Annotated, applyAnnotations } from "../../../src/mesh/linkerd/annotation.ts";
import { intentSchema } from "../../../src/mesh/linkerd/intent.ts";
import { buildRulesets } from "../../../src/mesh/linkerd/ruleset.ts";
import { content } from "../../../src/netfilter/rule.ts";
import type { Ruleset } from "../../../src/netfilter/table.ts";
import {
  better,
  betterDropping,
  clusterConf,
  differences,
  type InjectedPod,
  injectedPods,
  refused,
  theirRules,
} from "../../lab/injected.ts";
import { type Meant, meantBy } from "../../lab/meant.ts";
import { ledChains } from "../../lab/rulesets.ts";

function annotated(
  { linkerd, annotations }: InjectedPod,
  dropEntries: boolean,
): Annotated & Pick<Meant, "families"> {
  const { intent, families } = meantBy({ ...clusterConf, ...linkerd });
  const pod = { annotations, namespaceAnnotations: {}, spec: undefined };
  const policy = { denied: [], apiServerPorts: [], dropEntries };
  return { ...applyAnnotations(intent, pod, policy), families };
}

test("the fixture has the entries that the tables are about", () => {
  const names = injectedPods.map(({ name }) => name);
  expect(names.length).toBe(132);
  const strangers = [...better.keys(), ...betterDropping.keys()].filter(
    (name) => !names.includes(name),
  );
  expect(strangers).toEqual([]);
  expect(names.filter((name) => refused.has(name)).length).toBe(53);
});

test.each(injectedPods)("annotations mean what linkerd-init wrote: $name", (pod) => {
  const { intent, refusals, families } = annotated(pod, false);
  const problem = refused.get(pod.name);
  expect(refusals.map(({ annotation, problem }) => `${annotation}: ${problem}`)).toEqual(
    problem === undefined ? [] : [problem],
  );
  expect(intentSchema.parse(intent)).toEqual(intent);
  if (problem !== undefined) return;
  expectMeaning(buildRulesets(intent, families), better.get(pod.name)?.[1] ?? theirRules(pod));
});

const startedThere = injectedPods.filter(({ init }) => init.code === 0);

test.each(startedThere)("drop-entries lets each pod start as with linkerd-init: $name", (pod) => {
  const { intent, refusals, families } = annotated(pod, true);
  expect(refusals).toEqual([]);
  const other = betterDropping.get(pod.name) ?? better.get(pod.name);
  expectMeaning(buildRulesets(intent, families), other?.[1] ?? theirRules(pod));
});

function expectMeaning(ours: readonly Ruleset[], theirs: readonly (readonly string[])[]): void {
  expect(ours.length).toBe(theirs.length);
  for (const [i, ruleset] of ours.entries()) {
    const rules = ledChains(ruleset).flatMap((own) => [own.jump, ...own.rules].map(content));
    expect(differences(rules, theirs[i] ?? [], ruleset.family)).toEqual([]);
  }
}
