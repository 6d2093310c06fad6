// The intent's schema, as records are read back with it, and the families of a pod.
import { expect, test } from "vitest";
import { familiesOf, intentSchema } from "../../../src/mesh/linkerd/intent.ts";
import type { Family } from "../../../src/netfilter/table.ts";
import { cases, leastIntent } from "../../lab/case.ts";

const pods: [addresses: string[], ipv6: boolean, families: Family[]][] = [
  [["10.1.2.3/24"], false, ["ipv4"]],
  [["10.1.2.3/24"], true, ["ipv4"]],
  [["10.1.2.3/24", "fd00::3/64"], true, ["ipv4", "ipv6"]],
  [["fd00::3/64", "10.1.2.3/24"], true, ["ipv4", "ipv6"]],
  [["10.1.2.3/24", "10.1.2.4/24", "fd00::3/64"], false, ["ipv4"]],
  [["fd00::3/64"], true, ["ipv6"]],
  [["fd00::3/64"], false, ["ipv4"]],
  [[], true, ["ipv4"]],
  [[], false, ["ipv4"]],
];

test.each(pods)("familiesOf() a pod with %j when ipv6 is %s", (addresses, ipv6, families) => {
  expect(familiesOf(addresses, ipv6)).toEqual(families);
});

test.each(cases)("intentSchema takes $name back from JSON as it was", ({ intent }) => {
  expect(intentSchema.parse(JSON.parse(JSON.stringify(intent)))).toEqual(intent);
});

const wrong: [what: string, change: object][] = [
  ["no family", { families: [] }],
  ["an unknown family", { families: ["ipx"] }],
  ["port 0", { inboundPort: 0 }],
  ["port 65536", { outboundPort: 65536 }],
  ["half a port", { outboundPort: 80.5 }],
  ["uid 0", { proxyUid: 0 }],
  ["uid 4294967295", { proxyUid: 4_294_967_295 }],
  ["gid 0", { proxyGid: 0 }],
  ["a port as a string", { onlyInbound: ["80"] }],
  ["a range without an end", { excludeInbound: [{ from: 80 }] }],
  [
    "a subnet with a rule in it",
    { excludeSubnets: [{ family: "ipv4", text: "1.2.3.4/8 -j ACCEPT" }] },
  ],
  ["a subnet with a line in it", { excludeSubnets: [{ family: "ipv4", text: "1.2.3.4/8\n-F" }] }],
  ["no subnets at all", { excludeSubnets: undefined }],
];

test.each(wrong)("intentSchema refuses %s", (_, change) => {
  expect(intentSchema.safeParse({ ...leastIntent, ...change }).success).toBe(false);
});
