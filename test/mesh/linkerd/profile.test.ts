// Linkerd as the rest of the program knows it: its section of the conf, what pods are given, and what records keep.
import { expect, test } from "vitest";
import type { Intent } from "../../../src/mesh/linkerd/intent.ts";
import { linkerd } from "../../../src/mesh/linkerd/profile.ts";
import { buildRulesets } from "../../../src/mesh/linkerd/ruleset.ts";
import type { PodFacts } from "../../../src/mesh/pod.ts";
import type { Said } from "../../../src/mesh/profile.ts";
import { families } from "../../../src/netfilter/table.ts";
import { leastConf, leastIntent } from "../../lab/case.ts";

const closeWait = "net.netfilter.nf_conntrack_tcp_timeout_close_wait";
const all = [
  { family: "ipv4", text: "0.0.0.0/0" },
  { family: "ipv6", text: "::/0" },
] as const;

/** What is made of such an intent, for both families. */
function made(intent: Intent, seconds: string[] = []) {
  return {
    words: intent,
    rulesets: buildRulesets(intent, families),
    settings: seconds.map((value) => ({ name: closeWait, value })),
  };
}

test("readConf() reads the section, and gives the intent of a pod that says nothing", () => {
  const { intentOf, ...read } = linkerd.readConf({
    ...leastConf,
    "close-wait-timeout": "1h",
    "subnets-to-ignore": ["", "::/0", "0.0.0.0/0"],
    "proxy-id": 1,
    "proxy-gid": true,
  });
  const intent: Intent = { ...leastIntent, closeWaitSeconds: 3600, excludeSubnets: [...all] };
  const message = "all sources are excluded: what comes in passes the proxy by";
  expect(read).toEqual({
    faults: ["linkerd.proxy-gid: expected number or string, found true"],
    problems: [],
    notes: ["linkerd.subnets-to-ignore: an empty entry is passed over"],
    unknownKeys: ["linkerd.proxy-id"],
  });
  expect(intentOf?.(families)).toEqual({
    intent: made(intent, ["3600"]),
    refusals: [],
    notes: [],
    warnings: [{ message, fields: { subnets: ["0.0.0.0/0", "::/0"] } }],
  });
  expect(intentOf?.(["ipv6"])).toMatchObject({
    intent: { words: intent, rulesets: buildRulesets(intent, ["ipv6"]) },
    warnings: [{ message, fields: { subnets: ["::/0"] } }],
  });
});

test("readConf() gives no intent where a value is invalid", () => {
  expect(linkerd.readConf({ ...leastConf, "proxy-uid": 0 })).toEqual({
    faults: [],
    problems: ["linkerd.proxy-uid: 0 is not a user id (1 to 4294967294)"],
    notes: [],
    unknownKeys: [],
    intentOf: undefined,
  });
});

const facts: PodFacts = {
  annotations: { "config.linkerd.io/skip-inbound-ports": "25" },
  namespaceAnnotations: { "config.linkerd.io/proxy-gid": "staff" },
  spec: {
    hostNetwork: false,
    labels: {},
    containers: [{ name: "linkerd-proxy", runAsUser: 3000 }],
    initContainers: [{ name: "db-wait", runAsUser: undefined }],
  },
};
const said: Said = {
  facts,
  denied: [],
  dropEntries: false,
  apiServerPorts: [{ from: 443, to: 443 }],
};

test("intentOf() gives the pod what it says, and tells what is odd about it", () => {
  const intent: Intent = {
    ...leastIntent,
    proxyUid: 3000,
    excludeInbound: [{ from: 25, to: 25 }],
    excludeOutbound: [{ from: 443, to: 443 }],
  };
  expect(linkerd.readConf(leastConf).intentOf?.(families, said)).toEqual({
    intent: made(intent),
    refusals: [
      {
        annotation: "config.linkerd.io/proxy-gid of the namespace",
        problem: '"staff" is not an id (1 to 4294967294)',
      },
    ],
    notes: [
      "the proxy runs as uid 3000, not 2102: 3000 is exempted",
      "init containers run before the proxy and have no network but excluded ports (exclude their ports, or run them as uid 3000): db-wait",
    ],
    warnings: [],
  });
});

test("readIntent() takes back an intent from the words that a record keeps", () => {
  const intent: Intent = { ...leastIntent, closeWaitSeconds: 30 };
  const words = JSON.parse(JSON.stringify(intent));
  expect(linkerd.readIntent(words, families)).toEqual(made(intent, ["30"]));
  expect(linkerd.readIntent(words, ["ipv4"])?.rulesets).toEqual(buildRulesets(intent, ["ipv4"]));
  expect(linkerd.readIntent({ ...words, inboundPort: 0 }, families)).toBe(undefined);
  expect(linkerd.readIntent({}, families)).toBe(undefined);
});

test("a pod carries all that counts where the injector has marked it", () => {
  const key = "linkerd.io/proxy-version";
  expect([{}, { [key]: "" }, { [key]: "edge" }].map(linkerd.carriesAll)).toEqual([
    false,
    false,
    true,
  ]);
});

test("the settings that a pod may wish for have words for those who read of them", () => {
  const source = "the annotation config.linkerd.io/close-wait-timeout, or the conf's";
  expect([...linkerd.settings]).toEqual([[closeWait, { wish: "a close-wait-timeout", source }]]);
});

test("trials have every match and target that rules of a pod may have", () => {
  const used = new Set(
    linkerd.trialRulesets(families).flatMap(({ family, tables }) =>
      tables.flatMap(({ chains, placed }) => {
        const rules = [
          ...chains.flatMap((chain) => chain.rules),
          ...placed.map(({ rule }) => rule),
        ];
        return rules.flatMap((rule) =>
          [...rule.matchAll(/ (-[msoj]|--[a-z-]+-owner|--dports?) (?=(\S+))/g)].map(
            ([, flag = "", word = ""]) =>
              `${family} ${/^-[mj]$/.test(flag) ? `${flag} ${word}` : flag}`,
          ),
        );
      }),
    ),
  );
  const each = [
    "-m comment",
    "-m multiport",
    "-m owner",
    "-j RETURN",
    "-j REDIRECT",
    "-j PROXY_INIT_REDIRECT",
    "-j PROXY_INIT_OUTPUT",
    "-s",
    "-o",
    "--uid-owner",
    "--gid-owner",
    "--dports",
  ];
  const wanted = families.flatMap((family) => each.map((word) => `${family} ${word}`));
  expect([...used].toSorted()).toEqual(wanted.toSorted());
});
