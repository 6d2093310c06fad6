// Pods of Linkerd's own injector: from their annotations our rules mean what the real linkerd-init wrote, or a table of
// lab/injected.ts says why not and what there is instead.
import { expect, test } from "vitest";
import { parseConf } from "../../../src/conf/conf.ts";
import { type Annotated, applyAnnotations } from "../../../src/mesh/linkerd/annotation.ts";
import { intentSchema } from "../../../src/mesh/linkerd/intent.ts";
import { buildRulesets } from "../../../src/mesh/linkerd/ruleset.ts";
import { intentOfConf } from "../../../src/mesh/linkerd/values.ts";
import { content } from "../../../src/netfilter/rule.ts";
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
import { ledChains } from "../../lab/rulesets.ts";

function annotated({ linkerd, annotations }: InjectedPod, dropEntries: boolean): Annotated {
  const conf = parseConf({ linkerd: { ...clusterConf, ...linkerd } }).linkerd;
  const draft = intentOfConf(conf, conf.ipv6 ? ["ipv4", "ipv6"] : ["ipv4"]);
  const pod = { annotations, namespaceAnnotations: {}, isControlPlane: false, spec: undefined };
  return applyAnnotations(draft, pod, { denied: [], apiServerPorts: [], dropEntries });
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
  const { intent, refusals } = annotated(pod, false);
  const problem = refused.get(pod.name);
  expect(refusals.map(({ annotation, problem }) => `${annotation}: ${problem}`)).toEqual(
    problem === undefined ? [] : [problem],
  );
  expect(intentSchema.parse(intent)).toEqual(intent);
  if (problem === undefined) expectMeaning(intent, better.get(pod.name)?.[1] ?? theirRules(pod));
});

const startedThere = injectedPods.filter(({ init }) => init.code === 0);

test.each(startedThere)("drop-entries lets each pod start as with linkerd-init: $name", (pod) => {
  const { intent, refusals } = annotated(pod, true);
  expect(refusals).toEqual([]);
  const other = betterDropping.get(pod.name) ?? better.get(pod.name);
  expectMeaning(intent, other?.[1] ?? theirRules(pod));
});

function expectMeaning(intent: Annotated["intent"], theirs: readonly (readonly string[])[]): void {
  const ours = buildRulesets(intent);
  expect(ours.length).toBe(theirs.length);
  for (const [i, ruleset] of ours.entries()) {
    const rules = ledChains(ruleset).flatMap((own) => [own.jump, ...own.rules].map(content));
    expect(differences(rules, theirs[i] ?? [], ruleset.family)).toEqual([]);
  }
}
