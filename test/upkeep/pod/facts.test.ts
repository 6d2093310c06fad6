// Where a pod's words come from, by what the conf has: a word on the source counts without an API too, and without any word
// every pod is redirected as the conf says.
import { expect, test } from "vitest";
import type { Annotations } from "../../../src/mesh/pod.ts";
import { cni, conf, failed, own, succeeded } from "../../fake/call.ts";
import { mark } from "../../fake/pod.ts";
import { makeWorld, type World } from "../../fake/world.ts";
import { complete } from "../../lab/states.ts";

const result = succeeded(JSON.stringify(conf.prevResult));

/** A conf that names no API, beside annotations that the runtime sends. */
const withoutApi = (annotations: Annotations, sluice: object) => ({
  conf: { runtimeConfig: { "io.kubernetes.cri.pod-annotations": annotations }, sluice },
});

async function redirected(world: World, change: object): Promise<boolean> {
  expect(await cni(world, "ADD", change)).toEqual(result);
  const lines = own(world, "nft", "ipv4");
  expect([[], complete]).toContainEqual(lines);
  return lines.length > 0;
}

const named = { "pod-source": "annotations" };
const cases = [
  { what: "named, and they mark the pod", annotations: mark, sluice: named, expected: true },
  { what: "named, and they do not", annotations: {}, sluice: named, expected: false },
  { what: "not named, and they mark the pod", annotations: mark, sluice: {}, expected: true },
  { what: "not named, and they do not", annotations: {}, sluice: {}, expected: true },
];

test.for(cases)("without an API, annotations are $what", async (entry) => {
  const { annotations, sluice, expected } = entry;
  expect(await redirected(makeWorld(), withoutApi(annotations, sluice))).toBe(expected);
});

test("a source that is named and not there is an error, and no word for every pod", async () => {
  const world = makeWorld();
  expect(await cni(world, "ADD", withoutApi(mark, { "pod-source": "api" }))).toEqual(
    failed(7, "invalid conf: there is no way to know the pod", "kubernetes.kubeconfig is not set"),
  );
  expect(own(world, "nft", "ipv4")).toEqual([]);
});
