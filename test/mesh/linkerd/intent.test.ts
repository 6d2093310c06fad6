// The intent's schema, as records are read back with it.
import { expect, test } from "vitest";
import { intentSchema } from "../../../src/mesh/linkerd/intent.ts";
import { cases, leastIntent } from "../../lab/case.ts";

test.each(cases)("intentSchema takes $name back from JSON as it was", ({ intent }) => {
  expect(intentSchema.parse(JSON.parse(JSON.stringify(intent)))).toEqual(intent);
});

const wrong: [what: string, change: object][] = [
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
