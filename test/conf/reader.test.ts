// From the plugin conf to settings: defaults, words and what each means, and what is wrong.
import { expect, test } from "vitest";
import { readSettings } from "../../src/conf/reader.ts";
import { problemsOf, type Settings } from "../../src/conf/settings.ts";
import { defaultProfile } from "../../src/mesh/profiles.ts";
import { cases, leastConf } from "../lab/case.ts";
import { meantBy } from "../lab/meant.ts";

const linkerd = leastConf;
const span = (from: number, to = from) => ({ from, to });

/** All but the mesh, which is its own reader's. */
type Plain = Omit<Settings, "mesh" | "profile">;

const pods: Settings["pods"] = {
  source: undefined,
  kubernetes: undefined,
  excludedNamespaces: undefined,
  agent: undefined,
  controlPlaneNamespaces: ["linkerd"],
  apiServerPorts: [span(443), span(6443)],
  denials: {},
  onInvalid: "reject",
  problems: [],
};
const defaults: Plain = {
  log: { level: "info", file: "" },
  stateDir: "/run/sluice",
  timeoutMs: 20_000,
  backend: "auto",
  families: ["ipv4"],
  simulate: false,
  pods,
  faults: [],
  notes: [],
  unknownKeys: [],
};

function plain(document: object): Plain {
  const { mesh: _, profile, ...others } = readSettings({ ...document });
  expect(profile).toBe(defaultProfile);
  return others;
}

test("readSettings() fills in every default", () => {
  expect(plain({ linkerd })).toEqual(defaults);
});

test("readSettings() gives each word its meaning", () => {
  const document = {
    log_level: "debug",
    log_file: "/l",
    linkerd: { ...linkerd, ipv6: true, simulate: true, "iptables-mode": "plain" },
    kubernetes: { kubeconfig: "/k" },
    sluice: {
      "pod-source": "api",
      "exclude-namespaces": ["a"],
      "control-plane-namespace": ["b", "c"],
      "api-server-ports": [6443, "443-444", "442"],
      "agent-pod": { namespace: "d", "name-prefix": "e" },
      "deny-annotations": { f: ["proxy-uid"] },
      "on-invalid-annotation": "drop-entries",
      "state-dir": "/s",
      "timeout-seconds": "05",
    },
  };
  expect(plain(document)).toEqual({
    ...defaults,
    log: { level: "debug", file: "/l" },
    stateDir: "/s",
    timeoutMs: 5_000,
    backend: "plain",
    families: ["ipv4", "ipv6"],
    simulate: true,
    pods: {
      source: "api",
      kubernetes: { kubeconfig: "/k" },
      excludedNamespaces: ["a"],
      agent: { namespace: "d", namePrefix: "e" },
      controlPlaneNamespaces: ["b", "c"],
      apiServerPorts: [span(442, 444), span(6443)],
      denials: { f: ["proxy-uid"] },
      onInvalid: "drop-entries",
      problems: [],
    },
  });
});

test("readSettings() takes linkerd-cni's rendered default", () => {
  const document = {
    name: "linkerd-cni",
    type: "linkerd-cni",
    log_level: "info",
    linkerd: {
      ...linkerd,
      "ports-to-redirect": [],
      "inbound-ports-to-ignore": ["4191", "4190"],
      simulate: false,
      "use-wait-flag": false,
      "iptables-mode": "nft",
      ipv6: false,
    },
    kubernetes: { kubeconfig: "/etc/k", k8s_api_root: "https://192.0.2.1" },
  };
  const kubernetes = { kubeconfig: "/etc/k" };
  expect(plain(document)).toEqual({
    ...defaults,
    backend: "nft",
    pods: { ...pods, kubernetes },
  });
});

test.each(cases)("readSettings() has the mesh's section read: $name", (entry) => {
  expect(meantBy(entry.linkerd).intent).toEqual(entry.intent);
});

const modes: [word: string, backend: Settings["backend"]][] = [
  ["", "auto"],
  ["auto", "auto"],
  ["nft", "nft"],
  ["legacy", "legacy"],
];

test.each(modes)("readSettings() reads the mode %j as %s", (word, backend) => {
  const document = { linkerd: { ...linkerd, "iptables-mode": word } };
  expect(plain(document)).toEqual({ ...defaults, backend });
});

const seconds: [word: unknown, timeoutMs: number][] = [
  [5, 5_000],
  ["20", 20_000],
  ["0020", 20_000],
  [110, 110_000],
];

test.each(seconds)("readSettings() reads the time %j", (word, timeoutMs) => {
  const document = { linkerd, sluice: { "timeout-seconds": word } };
  expect(plain(document)).toEqual({ ...defaults, timeoutMs });
});

const inboundKey = "linkerd.inbound-ports-to-ignore";
const ofMesh = (key: string, value: unknown) => ({ linkerd: { ...linkerd, [key]: value } });
const ofSluice = (key: string, value: unknown) => ({ linkerd, sluice: { [key]: value } });
const timeout = (value: unknown) => ofSluice("timeout-seconds", value);
const wrong: [what: string, document: object, faults: string[], change?: Partial<Plain>][] = [
  ["no linkerd", {}, ["linkerd: expected object, found undefined"]],
  ["null for linkerd", { linkerd: null }, ["linkerd: expected object, found undefined"]],
  ["a list for linkerd", { linkerd: [] }, ["linkerd: expected object, found []"]],
  [
    "true for a number",
    ofMesh("incoming-proxy-port", true),
    ["linkerd.incoming-proxy-port: expected number or string, found true"],
  ],
  [
    "a string for a list",
    ofMesh("inbound-ports-to-ignore", "80"),
    [`${inboundKey}: expected array, found "80"`],
  ],
  [
    "a list with two faults",
    ofMesh("inbound-ports-to-ignore", [{}, 80, true]),
    [
      `${inboundKey}.0: expected number or string, found {}`,
      `${inboundKey}.2: expected number or string, found true`,
    ],
  ],
  [
    "a number for a subnet",
    ofMesh("subnets-to-ignore", [10]),
    ["linkerd.subnets-to-ignore.0: expected string, found 10"],
  ],
  ["a string for ipv6", ofMesh("ipv6", "true"), ['linkerd.ipv6: expected boolean, found "true"']],
  [
    "an unknown mode",
    ofMesh("iptables-mode", "bpf"),
    ['linkerd.iptables-mode: expected one of "auto", "nft", "legacy", "plain", "", found "bpf"'],
  ],
  ["no time", timeout(0), ["sluice.timeout-seconds: expected at least 1, found 0"]],
  ["too much time", timeout(111), ["sluice.timeout-seconds: expected at most 110, found 111"]],
  [
    "a part of a second",
    timeout(1.5),
    ["sluice.timeout-seconds: expected whole number, found 1.5"],
  ],
  ["a word for time", timeout("soon"), ['sluice.timeout-seconds: expected number, found "soon"']],
  ["a sign", timeout("+5"), ['sluice.timeout-seconds: expected number, found "+5"']],
  ["no time in words", timeout("0"), ["sluice.timeout-seconds: expected at least 1, found 0"]],
  [
    "a path that is none",
    ofSluice("state-dir", "s"),
    ['sluice.state-dir: expected an absolute path, found "s"'],
  ],
  [
    "one fault of a section, whose other keys stand",
    { log_file: "/l", linkerd, sluice: { "state-dir": "/s", "timeout-seconds": 300 } },
    ["sluice.timeout-seconds: expected at most 110, found 300"],
    { log: { level: "info", file: "/l" }, stateDir: "/s" },
  ],
  [
    "faults in every section, told in README's order",
    {
      sluice: 1,
      kubernetes: { kubeconfig: 1 },
      linkerd: { ipv6: 1, "close-wait-timeout": [] },
      log_level: 1,
    },
    [
      "log_level: expected string, found 1",
      "linkerd.close-wait-timeout: expected number or string, found []",
      "linkerd.ipv6: expected boolean, found 1",
      "kubernetes.kubeconfig: expected string, found 1",
      "sluice: expected object, found 1",
    ],
    { pods: { ...pods, kubernetes: { kubeconfig: "" } } },
  ],
  [
    "kubernetes that is no object: it is there all the same",
    { linkerd, kubernetes: "/k" },
    ['kubernetes: expected object, found "/k"'],
    { pods: { ...pods, kubernetes: { kubeconfig: "" } } },
  ],
];

test.each(wrong)("readSettings() takes defaults in the place of %s", (...row) => {
  const [, document, faults, change = {}] = row;
  expect(plain(document)).toEqual({ ...defaults, faults, ...change });
});

const sections = {
  top: ["log_level", "log_file", "kubernetes", "sluice"],
  linkerd: ["proxy-gid", "ports-to-redirect", "simulate", "iptables-mode", "close-wait-timeout"],
  sluice: [
    "pod-source",
    "exclude-namespaces",
    "control-plane-namespace",
    "api-server-ports",
    "agent-pod",
    "deny-annotations",
    "on-invalid-annotation",
    "state-dir",
    "timeout-seconds",
  ],
};
const nulls = Object.entries(sections).flatMap(([section, keys]) =>
  keys.map((key): [string, object] => [
    `${section}.${key}`,
    section === "top" ? { [key]: null } : { [section]: { [key]: null } },
  ]),
);

test.each(nulls)("readSettings() takes null for not set: %s", (_, document) => {
  expect(plain({ linkerd, ...document })).toEqual(defaults);
});

test("readSettings() takes null for not set inside of lists and objects too", () => {
  const sluice = {
    "exclude-namespaces": ["a", null],
    "deny-annotations": { a: null, b: ["proxy-uid", null] },
  };
  const kubernetes = { kubeconfig: null };
  const lists = { "inbound-ports-to-ignore": [null, 80], "subnets-to-ignore": [null] };
  const document = { linkerd: { ...linkerd, ...lists }, kubernetes, sluice };
  expect(plain(document)).toEqual({
    ...defaults,
    pods: {
      ...pods,
      kubernetes: { kubeconfig: "" },
      excludedNamespaces: ["a"],
      denials: { b: ["proxy-uid"] },
    },
  });
  expect(meantBy(document.linkerd).intent.excludeInbound).toEqual([span(80)]);
});

test("readSettings() tells invalid values of the mesh, and ours, apart", () => {
  const document = {
    linkerd: { ...linkerd, "proxy-uid": 0, ipv6: 1 },
    sluice: { "api-server-ports": ["443,", "https", "b"] },
  };
  const settings = readSettings(document);
  const fault = "linkerd.ipv6: expected boolean, found 1";
  const ofTheMesh = "linkerd.proxy-uid: 0 is not a user id (1 to 4294967294)";
  const ours = 'sluice.api-server-ports: "https" is not a port (1 to 65535)';
  expect([settings.faults, settings.mesh.problems, settings.pods.problems]).toEqual([
    [fault],
    [ofTheMesh],
    [ours],
  ]);
  expect(problemsOf(settings)).toEqual([fault, ofTheMesh, ours]);
});

test("readSettings() notes what it reads otherwise than it is written", () => {
  const document = {
    linkerd: { ...linkerd, "subnets-to-ignore": ["10.1.2.3/8"] },
    sluice: { "api-server-ports": ["443,"] },
  };
  expect(readSettings(document).notes).toEqual([
    'linkerd.subnets-to-ignore: "10.1.2.3/8" is read as 10.0.0.0/8',
    "sluice.api-server-ports: an empty entry is passed over",
  ]);
});

const keys: [when: string, document: Record<string, unknown>, unknown: string[]][] = [
  ["all are known", { linkerd: { ipv6: true }, sluice: { "state-dir": "/s" } }, []],
  [
    "the protocol has them",
    { cniVersion: "1.0.0", name: "n", type: "sluice", args: {}, ipMasq: true, dns: {} },
    [],
  ],
  ["a runtime adds them", { "cni.dev/attachments": [], runtimeConfig: {}, prevResult: {} }, []],
  ["linkerd-cni declares them", { kubernetes: { k8s_api_root: "x" } }, []],
  [
    "every section has some",
    {
      logLevel: "x",
      policy: {},
      sluice: { "state-dirs": "/s" },
      linkerd: { ipV6: true, "proxy-id": 1 },
      kubernetes: { config: "" },
    },
    [
      "logLevel",
      "policy",
      "linkerd.ipV6",
      "linkerd.proxy-id",
      "kubernetes.config",
      "sluice.state-dirs",
    ],
  ],
];

test.each(keys)("readSettings() tells keys that nobody reads when %s", (_, document, unknown) => {
  expect(readSettings({ linkerd, ...document }).unknownKeys).toEqual(unknown);
});
