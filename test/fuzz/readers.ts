// Every reader of text from outside, by name, with the errors that it declares. What a reader gives is judged elsewhere;
// here it only matters that it ends, and how.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseRecordName } from "../../src/attachment/record.ts";
import { readRecord } from "../../src/attachment/record-text.ts";
import { parseArgs, podName } from "../../src/cni/args.ts";
import { parseNetworkConf } from "../../src/cni/conf.ts";
import { CniError } from "../../src/cni/error.ts";
import { parseRequest } from "../../src/cni/request.ts";
import { readPrevResult } from "../../src/cni/result.ts";
import { requireVersion } from "../../src/cni/version.ts";
import { readSettings } from "../../src/conf/reader.ts";
import { KubeconfigError, loadKubeconfig } from "../../src/kube/kubeconfig.ts";
import { redact } from "../../src/log.ts";
import { applyAnnotations } from "../../src/mesh/linkerd/annotation.ts";
import { readSeconds } from "../../src/mesh/linkerd/duration.ts";
import { configKeys, configPrefix } from "../../src/mesh/linkerd/names.ts";
import { readFailure } from "../../src/netfilter/iptables/failure.ts";
import { parsePresence } from "../../src/netfilter/iptables/presence.ts";
import { chainOf, content, targetOf, words } from "../../src/netfilter/rule.ts";
import { parseSave, SaveSyntaxError } from "../../src/netfilter/save.ts";
import { asksNetwork } from "../../src/netns/host.ts";
import { parseKnowledge } from "../../src/node/knowledge.ts";
import { readVersion } from "../../src/node/programs.ts";
import { CidrError, familyOf, parseCidr } from "../../src/redirect/cidr.ts";
import { readGroup, readUser } from "../../src/redirect/owner.ts";
import { PortError, parsePort, parsePorts } from "../../src/redirect/port.ts";
import { leastIntent } from "../lab/case.ts";

export type Reader = {
  readonly name: string;
  readonly read: (text: string) => unknown;
  /** True for an error that the reader says it throws. */
  readonly declares: (error: unknown) => boolean;
};

const nothing = () => false;

function cniErrors(...codes: readonly number[]) {
  return (error: unknown) => error instanceof CniError && codes.includes(error.code);
}

export const readers: readonly Reader[] = [
  { name: "stdin", read: parseNetworkConf, declares: cniErrors(6, 7) },
  {
    name: "a string within stdin",
    read: (text) => parseNetworkConf(JSON.stringify({ name: "net", cniVersion: text, [text]: 1 })),
    declares: cniErrors(6, 7),
  },
  {
    name: "prevResult",
    read: (text) => readPrevResult(confWith(`{"ips":[{"address":${JSON.stringify(text)}}]}`)),
    declares: nothing,
  },
  {
    name: "a subnet of the conf",
    read: (text) => readSettings({ linkerd: { "subnets-to-ignore": [text], "proxy-uid": text } }),
    declares: nothing,
  },
  { name: "CNI_ARGS", read: (text) => podName(parseArgs(text)), declares: nothing },
  { name: "CNI_CONTAINERID", read: variable("CNI_CONTAINERID"), declares: cniErrors(4) },
  { name: "CNI_IFNAME", read: variable("CNI_IFNAME"), declares: cniErrors(4) },
  { name: "CNI_COMMAND", read: variable("CNI_COMMAND"), declares: cniErrors(4) },
  { name: "cniVersion", read: (text) => requireVersion("ADD", text), declares: cniErrors(1, 6) },
  {
    name: "cniVersion of CHECK",
    read: (text) => requireVersion("CHECK", text),
    declares: cniErrors(1, 6),
  },
  { name: "a port", read: parsePort, declares: (error) => error instanceof PortError },
  { name: "a list of ports", read: parsePorts, declares: (error) => error instanceof PortError },
  { name: "a duration", read: readSeconds, declares: nothing },
  { name: "a user", read: readUser, declares: nothing },
  { name: "a group", read: readGroup, declares: nothing },
  { name: "a subnet", read: parseCidr, declares: (error) => error instanceof CidrError },
  { name: "an address", read: familyOf, declares: nothing },
  ...configKeys.map((key) => ({
    name: `annotation ${key}`,
    read: (text: string) => annotated({ [configPrefix + key]: text }),
    declares: nothing,
  })),
  ...configKeys.map((key) => ({
    name: `annotation ${key}, entries dropped`,
    read: (text: string) => annotated({ [configPrefix + key]: text }, true),
    declares: nothing,
  })),
  { name: "an annotation's key", read: (text) => annotated({ [text]: "1" }), declares: nothing },
  {
    name: "iptables-save",
    read: parseSave,
    declares: (error) => error instanceof SaveSyntaxError,
  },
  {
    name: "a rule of iptables-save",
    read: (text) => parseSave(`*nat\n:OUTPUT ACCEPT [0:0]\n-A OUTPUT ${text}\nCOMMIT\n`),
    declares: (error) => error instanceof SaveSyntaxError,
  },
  { name: "a rule's words", read: (text) => words(`-A OUTPUT ${text}`), declares: nothing },
  { name: "a rule's chain", read: chainOf, declares: nothing },
  { name: "a rule's target", read: (text) => targetOf(`-A OUTPUT ${text}`), declares: nothing },
  { name: "a rule's content", read: (text) => content(`-A OUTPUT ${text}`), declares: nothing },
  { name: "a tool's message", read: (text) => readFailure(1, text), declares: nothing },
  { name: "--version", read: readVersion, declares: nothing },
  { name: "presence", read: parsePresence, declares: nothing },
  { name: "nsswitch.conf", read: asksNetwork, declares: nothing },
  { name: "a record", read: readRecord, declares: nothing },
  { name: "a record's name", read: parseRecordName, declares: nothing },
  { name: "backend.json", read: (text) => parseKnowledge(text, "boot"), declares: nothing },
  { name: "a kubeconfig", read: kubeconfig, declares: (error) => error instanceof KubeconfigError },
  {
    name: "a word of a kubeconfig",
    read: (text) => kubeconfig(JSON.stringify(kubeconfigObject(text))),
    declares: (error) => error instanceof KubeconfigError,
  },
  { name: "a log line", read: redact, declares: nothing },
];

function confWith(prevResult: string) {
  return { cniVersion: "1.1.0", name: "net", prevResult, document: {} };
}

function variable(name: string) {
  const rest = { CNI_COMMAND: "ADD", CNI_CONTAINERID: "c1", CNI_IFNAME: "eth0" };
  return (text: string) =>
    parseRequest({ ...rest, CNI_NETNS: "/run/netns/a", CNI_PATH: "/opt/cni/bin", [name]: text });
}

function annotated(annotations: Readonly<Record<string, string>>, dropEntries = false) {
  const pod = { annotations, namespaceAnnotations: {}, spec: undefined };
  return applyAnnotations(leastIntent, pod, { denied: [], apiServerPorts: [], dropEntries });
}

function kubeconfig(text: string) {
  const directory = mkdtempSync(join(tmpdir(), "slc-fuzz-"));
  try {
    const file = join(directory, "kubeconfig");
    writeFileSync(file, text, { mode: 0o600 });
    return loadKubeconfig(file);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function kubeconfigObject(text: string) {
  return {
    "current-context": "c",
    clusters: [{ name: "c", cluster: { server: text, "certificate-authority-data": text } }],
    users: [{ name: "u", user: { token: text } }],
    contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
  };
}
