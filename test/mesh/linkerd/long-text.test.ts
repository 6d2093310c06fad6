// Whoever may make a pod writes these texts, and root reads them: the longest that Kubernetes lets through, in shapes that
// cost most where a pattern goes back over what it has read, are read at once. What grows with the square of its input
// would not end within the time of a test.
import { expect, test } from "vitest";
import { parseArgs } from "../../../src/cni/args.ts";
import { rawMembers } from "../../../src/cni/raw-json.ts";
import { readSettings } from "../../../src/conf/reader.ts";
import { applyAnnotations } from "../../../src/mesh/linkerd/annotation.ts";
import { configKeys, configPrefix } from "../../../src/mesh/linkerd/names.ts";
import { leastConf, leastIntent } from "../../lab/case.ts";

/** For one test, on a machine that is busy: reading all shapes takes a second, or minutes where one is read badly. */
const generous = { timeout: 60_000 };

/** All annotations of a pod together. */
const longest = 262_144;

/** What stands at the beginning, again and again in the middle, and at the end. */
const shapes: [start: string, middle: string, end: string][] = [
  ["1", " ", "x"],
  ["", " ", ""],
  ["", "\t\r\n ", "1"],
  ["80,", " ", ",443"],
  ["", ",", ""],
  ["", " ,", " "],
  ["", "1,", "1"],
  ["", "x,", "x"],
  ["", "+1,", "1"],
  ["", "9", ""],
  ["", "0", "1"],
  ["", "-", ""],
  ["", "1-", "2"],
  ["", "1-2,", "x"],
  ["", "1h", ""],
  ["", "1.", "h"],
  ["", "1.1.1.1/8,", "10.0.0.1"],
  ["", "::", "/64"],
  ["", "f:", ":/64"],
  ["", "fd00::1,", "x"],
  ["", "/", ""],
  ["", "\u0000", ""],
  ["", "\u{1f600}", ""],
  ["", '"\\', ""],
];

function textOf([start, middle, end]: (typeof shapes)[number], length = longest): string {
  const room = length - start.length - end.length;
  return start + middle.repeat(Math.floor(room / middle.length)) + end;
}

test.each(configKeys)(
  "applyAnnotations() reads %s in time, however long and odd it is",
  generous,
  (key) => {
    for (const shape of shapes) {
      for (const dropEntries of [false, true]) {
        const pod = {
          annotations: { [configPrefix + key]: textOf(shape) },
          namespaceAnnotations: {},
          spec: undefined,
        };
        const policy = { denied: [], apiServerPorts: [], dropEntries };
        const { refusals, notes } = applyAnnotations(leastIntent, pod, policy);
        // What is told fits into a log line.
        expect(JSON.stringify([refusals, notes]).length).toBeLessThan(8_192);
      }
    }
  },
);

test("applyAnnotations() refuses an annotation that Kubernetes would not let through", () => {
  const annotations = { [`${configPrefix}skip-inbound-ports`]: "1".repeat(longest + 1) };
  const pod = { annotations, namespaceAnnotations: {}, spec: undefined };
  const { intent, refusals } = applyAnnotations(leastIntent, pod, {
    denied: [],
    apiServerPorts: [],
    dropEntries: false,
  });
  expect(intent).toEqual(leastIntent);
  expect(refusals).toEqual([
    {
      annotation: "config.linkerd.io/skip-inbound-ports",
      problem: "is longer than 262144 characters",
    },
  ]);
});

test("applyAnnotations() refuses a list of more entries than there can be rules for", () => {
  const listOf = (count: number) => Array.from({ length: count }, (_, i) => 2 * i + 1).join();
  const said = (count: number) => ({
    annotations: { [`${configPrefix}skip-outbound-ports`]: listOf(count) },
    namespaceAnnotations: {},
    spec: undefined,
  });
  const policy = { denied: [], apiServerPorts: [], dropEntries: true };
  expect(applyAnnotations(leastIntent, said(4_000), policy).intent.excludeOutbound.length).toBe(
    4_000,
  );
  expect(applyAnnotations(leastIntent, said(4_001), policy)).toEqual({
    intent: leastIntent,
    refusals: [
      {
        annotation: "config.linkerd.io/skip-outbound-ports",
        problem: "has more than 4000 entries",
      },
    ],
    notes: [],
  });
});

const keys: [what: string, key: (i: number) => string][] = [
  ["like ours", (i) => `config.linkerd.io/skip-inbound-port${i}`],
  ["that are prefixes", (i) => `${"linkerd".repeat(10)}/${i}`],
  ["that are long", (i) => `${"linkerd-".repeat(1_000)}/proxy-ui${i}`],
];

test.each(keys)(
  "applyAnnotations() reads keys %s in time, however many there are",
  generous,
  (_, key) => {
    const count = Math.floor((4 * longest) / key(0).length);
    const annotations = Object.fromEntries(Array.from({ length: count }, (_, i) => [key(i), ""]));
    const pod = { annotations, namespaceAnnotations: {}, spec: undefined };
    const { notes } = applyAnnotations(leastIntent, pod, {
      denied: [],
      apiServerPorts: [],
      dropEntries: false,
    });
    expect(notes.length).toBeLessThanOrEqual(10);
  },
);

test("the conf's lists and numbers are read in time", generous, () => {
  for (const shape of shapes) {
    const text = textOf(shape);
    const keys = ["inbound-ports-to-ignore", "ports-to-redirect", "subnets-to-ignore"] as const;
    const lists = Object.fromEntries(keys.map((key) => [key, [text, ...text.slice(0, 4_096)]]));
    const words = { "proxy-gid": text, "close-wait-timeout": text };
    const { mesh, notes } = readSettings({ linkerd: { ...leastConf, ...lists, ...words } });
    expect(mesh.problems.length).toBeGreaterThan(0);
    expect(JSON.stringify([mesh.problems, notes]).length).toBeLessThan(16_384);
    expect(mesh.intentOf).toBe(undefined);
  }
});

test("CNI_ARGS and the members of a result are read in time", generous, () => {
  for (const shape of shapes) {
    const text = textOf(shape);
    expect(parseArgs(text.replaceAll(",", ";")).size).toBeLessThanOrEqual(text.length);
    const json = JSON.stringify({ [text]: text, ips: [text] });
    expect(rawMembers(json).map(({ key }) => key)).toEqual([text, "ips"]);
  }
});
