// Pods of Linkerd's own injector, by the executable itself and the annotations that a runtime hands over: what the real
// linkerd-init wrote for them, or what a table of lab/injected.ts says; and all that started there starts with drop-entries.
import { expect } from "vitest";
import { families } from "../../../../src/netfilter/table.ts";
import {
  better,
  betterDropping,
  clusterConf,
  differences,
  type InjectedPod,
  injectedPods,
  refused,
  theirRules,
} from "../../../lab/injected.ts";
import { type Answer, type Attachment, confFor, lookInto, test } from "./level.ts";

function add(pod: Attachment, injected: InjectedPod, onInvalid: string): Promise<Answer> {
  const linkerd = { ...clusterConf, "iptables-mode": "nft", ...injected.linkerd };
  const sluice = { "on-invalid-annotation": onInvalid };
  return pod.call("ADD", confFor(pod, { linkerd, sluice, annotations: injected.annotations }));
}

test.concurrent.for(injectedPods)(
  "ADD means what linkerd-init wrote: $name",
  async (injected, { pod }) => {
    const answer = await add(pod, injected, "reject");
    const problem = refused.get(injected.name);
    if (problem === undefined) {
      expectRules(pod, answer, better.get(injected.name)?.[1] ?? theirRules(injected));
      return;
    }
    const msg = `pod emoji/web has annotations that cannot be honoured: ${problem}`;
    expect([answer.exitCode, JSON.parse(answer.stdout)]).toMatchObject([1, { code: 103, msg }]);
    expect([lookInto(pod).untouched, pod.records()]).toEqual([true, []]);
  },
);

const tolerated = injectedPods.filter(({ name, init }) => init.code === 0 && refused.has(name));

test.concurrent.for(tolerated)(
  "ADD drops single entries as linkerd-init does: $name",
  async (injected, { pod }) => {
    const answer = await add(pod, injected, "drop-entries");
    expectRules(pod, answer, betterDropping.get(injected.name)?.[1] ?? theirRules(injected));
  },
);

function expectRules(
  pod: Attachment,
  { exitCode }: Answer,
  theirs: readonly (readonly string[])[],
): void {
  expect(exitCode).toBe(0);
  const { rules } = lookInto(pod);
  for (const [i, family] of families.entries()) {
    expect(rules[family].length > 0).toBe(theirs[i] !== undefined);
    expect(differences(rules[family], theirs[i] ?? [], family)).toEqual([]);
  }
}
