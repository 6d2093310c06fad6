// Values of annotations that are none: whatever a resolver or another parser would make of them, no rule gets it.
import { expect, test } from "vitest";
import { applyAnnotations } from "../../../src/mesh/linkerd/annotation.ts";
import type { PodFacts } from "../../../src/mesh/pod.ts";
import { leastIntent } from "../../lab/case.ts";

const policy = { denied: [], apiServerPorts: [], dropEntries: false };

/** What is made of one annotation of a pod whose conf excludes nothing. */
function appliedOf(key: string, text: string) {
  const pod: PodFacts = {
    annotations: { [`config.linkerd.io/${key}`]: text },
    namespaceAnnotations: {},
    spec: undefined,
  };
  return applyAnnotations(leastIntent, pod, policy);
}

function refusing(key: string, problem: string) {
  const refusals = [{ annotation: `config.linkerd.io/${key}`, problem }];
  return { intent: leastIntent, refusals, notes: [] };
}

const noPort = "is not a port (1 to 65535)";
const noRange = "is not a range of ports (1-65535, lower end first)";
const noEntry = "is not a port or a range of ports";
const ports: [text: string, problem: string][] = [
  ["ssh", `"ssh" ${noPort}`],
  ["80,ssh", `"ssh" ${noPort}`],
  ["0x50", `"0x50" ${noPort}`],
  ["0o120", `"0o120" ${noPort}`],
  ["1e3", `"1e3" ${noPort}`],
  ["+80", `"+80" ${noPort}`],
  ["80.0", `"80.0" ${noPort}`],
  ["80:90", `"80:90" ${noPort}`],
  ["!80", `"!80" ${noPort}`],
  ["000065536", `"000065536" ${noPort}`],
  ["00000000080", `"00000000080" ${noPort}`],
  ["65536", `"65536" ${noPort}`],
  ["80 90", `"80 90" ${noPort}`],
  ["80;90", `"80;90" ${noPort}`],
  ["80\u00a0", `"80\\u00a0" ${noPort}`],
  ["\u0668\u0660", `"\\u0668\\u0660" ${noPort}`],
  ["\uff18\uff10", `"\\uff18\\uff10" ${noPort}`],
  ["80\u2028443", `"80\\u2028443" ${noPort}`],
  ['80"', `"80\\"" ${noPort}`],
  ["443,[4222]", `"[4222]" ${noPort}`],
  [" ", `"" ${noEntry}`],
  [",,,", `"" ${noEntry}`],
  ["80,", `"" ${noEntry}`],
  ["-80", `"-80" ${noRange}`],
  ["80-", `"80-" ${noRange}`],
  ["9000-8000", `"9000-8000" ${noRange}`],
  ["80-90-100", `"80-90-100" ${noEntry}`],
  ["ssh-smtp", `"ssh-smtp" ${noRange}`],
  ["80 - 90", `"80 - 90" ${noRange}`],
  ["1-65536", `"1-65536" ${noRange}`],
];

test.each(ports)("applyAnnotations() lets no port through that is none: %j", (text, problem) => {
  const key = "skip-outbound-ports";
  expect(appliedOf(key, text)).toEqual(refusing(key, problem));
});

const subnets: readonly string[] = [
  "localhost",
  "localhost/8",
  "example.com/32",
  "10.0.0.1/",
  "10.1/16",
  "010.0.0.1/8",
  "0x0a.0.0.1/8",
  "167772161/8",
  "10.0.0.0/33",
  "10.0.0.0/08",
  "10.0.0.0/255.0.0.0",
  "10.0.0.0/8/8",
  "54.164.234.192/32ss",
  "!10.0.0.0/8",
  "fd00::/",
  "fd00::/129",
  "::1::/64",
  "fd00::%eth0/64",
];

test.each(subnets)("applyAnnotations() lets no subnet through that is none: %s", (text) => {
  const key = "skip-subnets";
  const problem = `${JSON.stringify(text)} is not a subnet (like 10.0.0.0/8 or fd00::/8)`;
  expect(appliedOf(key, `10.0.0.0/8, ${text}`)).toEqual(refusing(key, problem));
});

test("applyAnnotations() leaves the middle of a long entry out of what it says", () => {
  const key = "skip-inbound-ports";
  const problem = `"${"x".repeat(149)} ... ${"x".repeat(100 - noPort.length - 2)}" ${noPort}`;
  expect(appliedOf(key, "x".repeat(100_000))).toEqual(refusing(key, problem));
});
