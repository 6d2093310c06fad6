// The plugin conf's own keys: types, defaults, slips.
import { expect, test } from "vitest";
import { parseConf, readConf, unknownKeys } from "../../src/conf/conf.ts";
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
  ["a part of a second", timeout(1.5), "sluice.timeout-seconds: expected whole number, found 1.5"],
  ["a word for time", timeout("soon"), 'sluice.timeout-seconds: expected number, found "soon"'],
  ["a sign", timeout("+5"), 'sluice.timeout-seconds: expected number, found "+5"'],
  ["no time in words", timeout("0"), "sluice.timeout-seconds: expected at least 1, found 0"],
  ["null for linkerd", { linkerd: null }, "linkerd: expected object, found undefined"],
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

const lenient: [when: string, document: object, conf: object, problems: string[]][] = [
  ["all is good", { log_level: "debug", linkerd: {} }, { log_level: "debug" }, []],
  ["linkerd is missing", {}, {}, ["linkerd: expected object, found undefined"]],
  [
    "a key of linkerd is wrong",
    { log_file: "/l", linkerd: { ipv6: 1, "proxy-uid": 7 }, sluice: { "state-dir": "/s" } },
    {
      log_file: "/l",
      linkerd: { ...linkerdDefaults, "proxy-uid": 7 },
      sluice: { ...sluiceDefaults, "state-dir": "/s" },
    },
    ["linkerd.ipv6: expected boolean, found 1"],
  ],
  [
    "a key of sluice is wrong",
    { log_file: "/l", linkerd: {}, sluice: { "state-dir": "/s", "timeout-seconds": 300 } },
    { log_file: "/l", sluice: { ...sluiceDefaults, "state-dir": "/s" } },
    ["sluice.timeout-seconds: expected at most 110, found 300"],
  ],
  [
    "two keys are wrong, and a list in two entries",
    { linkerd: { "inbound-ports-to-ignore": [{}, 80, true] }, sluice: { "state-dir": "s" } },
    {},
    [
      "linkerd.inbound-ports-to-ignore.0: expected number or string, found {}",
      "linkerd.inbound-ports-to-ignore.2: expected number or string, found true",
      'sluice.state-dir: expected an absolute path, found "s"',
    ],
  ],
  [
    "kubernetes is wrong: it is there all the same",
    { linkerd: {}, kubernetes: "/k" },
    { kubernetes: { kubeconfig: "" } },
    ['kubernetes: expected object, found "/k"'],
  ],
  ["sluice is wrong", { linkerd: {}, sluice: 1 }, {}, ["sluice: expected object, found 1"]],
  [
    "all is wrong",
    { log_level: 1, linkerd: 1, sluice: 1 },
    {},
    [
      "log_level: expected string, found 1",
      "linkerd: expected object, found 1",
      "sluice: expected object, found 1",
    ],
  ],
];

test.each(lenient)("readConf() gives what can be read when %s", (...row) => {
  const [, document, conf, problems] = row;
  expect(readConf({ ...document })).toEqual({ conf: { ...defaults, ...conf }, problems });
});

const optional = {
  top: ["log_level", "log_file", "kubernetes", "sluice"],
  linkerd: ["incoming-proxy-port", "proxy-gid", ...Object.keys(linkerdDefaults)],
  kubernetes: ["kubeconfig"],
  sluice: ["pod-source", "exclude-namespaces", "agent-pod", ...Object.keys(sluiceDefaults)],
};
const nulls = Object.entries(optional).flatMap(([section, keys]) =>
  keys.map((key): [string, object] => [
    `${section}.${key}`,
    section === "top" ? { [key]: null } : { [section]: { [key]: null } },
  ]),
);

test.each(nulls)("readConf() takes null for not set: %s", (_, document) => {
  const { conf, problems } = readConf({ linkerd: {}, ...document });
  const { kubernetes, ...others } = conf;
  expect([others, problems]).toEqual([defaults, []]);
  expect([undefined, { kubeconfig: "" }]).toContainEqual(kubernetes);
});

test("readConf() takes null for not set inside of lists and objects too", () => {
  const sluice = {
    "exclude-namespaces": ["a", null],
    "agent-pod": null,
    "deny-annotations": { a: null, b: ["proxy-uid", null] },
  };
  const linkerd = { "inbound-ports-to-ignore": [null, 80], "subnets-to-ignore": [null] };
  const { conf, problems } = readConf({ linkerd, sluice });
  expect(problems).toEqual([]);
  expect(conf.linkerd).toEqual({ ...linkerdDefaults, "inbound-ports-to-ignore": [80] });
  expect(conf.sluice).toEqual({
    ...sluiceDefaults,
    "exclude-namespaces": ["a"],
    "deny-annotations": { b: ["proxy-uid"] },
  });
});

const seconds: [word: unknown, seconds: number][] = [
  [5, 5],
  ["20", 20],
  ["0020", 20],
  [110, 110],
];

test.each(seconds)("readConf() reads the time %j", (word, found) => {
  const { conf, problems } = readConf({ linkerd: {}, sluice: { "timeout-seconds": word } });
  expect([conf.sluice["timeout-seconds"], problems]).toEqual([found, []]);
});

test("parseConf() tells of ten faults, and how many more there are", () => {
  const linkerd = { "subnets-to-ignore": Array.from({ length: 12 }, () => 1) };
  const told = Array.from(
    { length: 10 },
    (_, i) => `linkerd.subnets-to-ignore.${i}: expected string, found 1`,
  );
  expect(thrownBy(() => parseConf({ linkerd }))).toEqual(
    cniError(7, `invalid conf: ${told.join("; ")}; and 2 more`),
  );
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
