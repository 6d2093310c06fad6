// The plugin conf's own keys: types, defaults, slips.
import { expect, test } from "vitest";
import { parseConf, parseConfLeniently, unknownKeys } from "../../src/mesh/conf.ts";
import { cniError, thrownBy } from "../fake/thrown.ts";
import { cases } from "../lab/case.ts";

const linkerdDefaults = {
  "ports-to-redirect": [],
  "inbound-ports-to-ignore": [],
  "outbound-ports-to-ignore": [],
  "subnets-to-ignore": [],
  simulate: false,
  "use-wait-flag": false,
  "iptables-mode": "auto",
  ipv6: false,
};
const sluiceDefaults = {
  "exclude-namespaces": ["kube-system"],
  "control-plane-namespace": "linkerd",
  "api-server-ports": [443, 6443],
  "deny-annotations": {},
  "on-invalid-annotation": "reject",
  "state-dir": "/run/sluice",
  "timeout-seconds": 20,
};
const defaults = {
  log_level: "info",
  log_file: "",
  linkerd: linkerdDefaults,
  sluice: sluiceDefaults,
};

test("parseConf() fills in every default when linkerd is empty", () => {
  expect(parseConf({ linkerd: {} })).toEqual(defaults);
});

test("parseConf() keeps what is given, also keys that it does not know", () => {
  const document = {
    cniVersion: "1.0.0",
    log_level: "debug",
    linkerd: { "proxy-uid": "2102", "iptables-mode": "", strange: 1 },
    kubernetes: { kubeconfig: "/etc/k" },
    sluice: { "timeout-seconds": 5, "pod-source": "api" },
  };
  expect(parseConf(document)).toEqual({
    ...defaults,
    ...document,
    linkerd: { ...linkerdDefaults, ...document.linkerd },
    sluice: { ...sluiceDefaults, ...document.sluice },
  });
});

test("parseConf() takes linkerd-cni's rendered default", () => {
  const linkerd = {
    "incoming-proxy-port": 4143,
    "outgoing-proxy-port": 4140,
    "proxy-uid": 2102,
    "ports-to-redirect": [],
    "inbound-ports-to-ignore": ["4191", "4190"],
    simulate: false,
    "use-wait-flag": false,
    "iptables-mode": "nft",
    ipv6: false,
  };
  const kubernetes = { kubeconfig: "/etc/cni/net.d/ZZZ-linkerd-cni-kubeconfig" };
  const document = {
    name: "linkerd-cni",
    type: "linkerd-cni",
    log_level: "info",
    linkerd,
    kubernetes,
  };
  const conf = parseConf(document);
  expect(conf).toEqual({ ...defaults, ...document, linkerd: { ...linkerdDefaults, ...linkerd } });
  expect(unknownKeys(document, conf)).toEqual([]);
});

test.each(cases)("parseConf() takes $name", ({ linkerd }) => {
  expect(parseConf({ linkerd }).linkerd).toEqual({ ...linkerdDefaults, ...linkerd });
});

const inboundKey = "linkerd.inbound-ports-to-ignore";
const port = (value: unknown) => ({ linkerd: { "incoming-proxy-port": value } });
const excluded = (value: unknown) => ({ linkerd: { "inbound-ports-to-ignore": value } });
const subnets = (value: unknown) => ({ linkerd: { "subnets-to-ignore": value } });
const ipv6 = (value: unknown) => ({ linkerd: { ipv6: value } });
const mode = (value: unknown) => ({ linkerd: { "iptables-mode": value } });
const timeout = (value: unknown) => ({ linkerd: {}, sluice: { "timeout-seconds": value } });
const wrong: [what: string, document: object, problem: string][] = [
  ["no linkerd", {}, "linkerd: expected object, found undefined"],
  ["a list for linkerd", { linkerd: [] }, "linkerd: expected object, found []"],
  [
    "true for a number",
    port(true),
    "linkerd.incoming-proxy-port: expected number or string, found true",
  ],
  [
    "null for a number",
    port(null),
    "linkerd.incoming-proxy-port: expected number or string, found null",
  ],
  ["a string for a list", excluded("80"), `${inboundKey}: expected array, found "80"`],
  [
    "an object in a list",
    excluded([80, {}]),
    `${inboundKey}.1: expected number or string, found {}`,
  ],
  [
    "a number for a subnet",
    subnets([10]),
    "linkerd.subnets-to-ignore.0: expected string, found 10",
  ],
  ["a string for ipv6", ipv6("true"), 'linkerd.ipv6: expected boolean, found "true"'],
  [
    "an unknown mode",
    mode("bpf"),
    'linkerd.iptables-mode: expected one of "auto", "nft", "legacy", "plain", "", found "bpf"',
  ],
  ["no time", timeout(0), "sluice.timeout-seconds: expected at least 1, found 0"],
  ["too much time", timeout(111), "sluice.timeout-seconds: expected at most 110, found 111"],
  ["null for sluice", { linkerd: {}, sluice: null }, "sluice: expected object, found null"],
  [
    "two faults",
    { log_level: 1, ...ipv6(1) },
    "log_level: expected string, found 1; linkerd.ipv6: expected boolean, found 1",
  ],
];

test.each(wrong)("parseConf() refuses %s", (_, document, problem) => {
  const error = cniError(7, `invalid conf: ${problem}`);
  expect(thrownBy(() => parseConf({ ...document }))).toEqual(error);
});

const lenient: [when: string, document: object, conf: object][] = [
  ["all is good", { log_level: "debug", linkerd: {} }, { log_level: "debug" }],
  ["linkerd is missing", {}, {}],
  [
    "linkerd is wrong",
    { linkerd: { ipv6: 1 }, sluice: { "state-dir": "/s" } },
    { sluice: { ...sluiceDefaults, "state-dir": "/s" } },
  ],
  ["sluice is wrong", { linkerd: {}, sluice: 1 }, {}],
  ["all is wrong", { log_level: 1, linkerd: 1, sluice: 1 }, {}],
];

test.each(lenient)("parseConfLeniently() gives what can be read when %s", (_, document, conf) => {
  expect(parseConfLeniently({ ...document })).toEqual({ ...defaults, ...conf });
});

const keys: [when: string, document: Record<string, unknown>, unknown: string[]][] = [
  ["all are known", { linkerd: { ipv6: true }, sluice: { "state-dir": "/s" } }, []],
  [
    "the protocol has them",
    {
      cniVersion: "1.0.0",
      name: "n",
      type: "sluice",
      args: {},
      ipMasq: true,
      dns: {},
      linkerd: {},
    },
    [],
  ],
  [
    "a runtime adds them",
    { "cni.dev/attachments": [], runtimeConfig: {}, prevResult: {}, linkerd: {} },
    [],
  ],
  ["the top level has some", { linkerd: {}, logLevel: "x", policy: {} }, ["logLevel", "policy"]],
  [
    "linkerd has some",
    { linkerd: { ipV6: true, "proxy-id": 1 } },
    ["linkerd.ipV6", "linkerd.proxy-id"],
  ],
  ["sluice has some", { linkerd: {}, sluice: { "state-dirs": "/s" } }, ["sluice.state-dirs"]],
];

test.each(keys)("unknownKeys() tells keys that nobody reads when %s", (_, document, unknown) => {
  expect(unknownKeys(document, parseConf(document))).toEqual(unknown);
});
