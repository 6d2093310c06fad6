// What the drop-in tests share: a pod's netns, an API server, and calls of the real executable as a runtime on a node
// makes them, which do not keep this process from being the API server.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { test as base } from "vitest";
import { content } from "../../../../src/netfilter/rule.ts";
import { backends, type Family } from "../../../../src/netfilter/table.ts";
import { objectsFor, podName, podUid } from "../../../lab/api-objects.ts";
import { type ApiStub, startApi } from "../../../lab/api-stub.ts";
import { podAddresses } from "../../../lab/case.ts";
import { makeAuthority } from "../../../lab/certificates.ts";
import { linkerdKubeconfig } from "../../../lab/kubeconfig.ts";
import { canMakeNetns, type LabNetns, makeNetns } from "../../../lab/netns.ts";
import { plugin } from "../../../lab/plugin.ts";

export type Answer = {
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
  readonly durationMs: number;
};

/** One pod's attachment, on a node of its own. */
export type Attachment = {
  readonly netns: LabNetns;
  /** The node's files: state directory, kubeconfig. */
  readonly dir: string;
  readonly kubeconfig: string;
  /** Calls the executable; `env` takes precedence. */
  readonly call: (
    command: string,
    conf: object,
    env?: Readonly<Record<string, string>>,
  ) => Promise<Answer>;
  readonly records: () => string[];
};

/** A test that is given an API server that knows the pod, and the pod's attachment. */
export const test = base
  .extend("authority", { scope: "file" }, makeAuthority)
  .extend("api", async ({ authority }, { onCleanup }): Promise<ApiStub> => {
    const api = await startApi({ authority });
    api.objects = objectsFor();
    onCleanup(api.close);
    return api;
  })
  .extend("pod", ({ api, skip }, { onCleanup }): Attachment => {
    requireNetns(skip);
    const attachment = makeAttachment(api, "drop-in");
    onCleanup(() => removeAttachment(attachment));
    return attachment;
  });

/** Many at a time, for tests that start many pods at once; removed with removeAttachment. */
export function makeAttachment(api: ApiStub, purpose: string): Attachment {
  const netns = makeNetns(purpose);
  const dir = mkdtempSync(join(tmpdir(), "slc-drop-in-"));
  const kubeconfig = join(dir, "kubeconfig");
  writeFileSync(kubeconfig, linkerdKubeconfig(api));
  const call: Attachment["call"] = async (command, conf, env = {}) => {
    const { exitCode, stdout, stderr, durationMs } = await execa(plugin, [], {
      env: { PATH: process.env["PATH"] ?? "", ...environment(command, netns), ...env },
      extendEnv: false,
      input: JSON.stringify(conf),
      reject: false,
      stripFinalNewline: false,
    });
    return { exitCode, stdout, stderr, durationMs };
  };
  return { netns, dir, kubeconfig, call, records: () => namesIn(join(dir, "state/attachments")) };
}

export function removeAttachment({ netns, dir }: Attachment): void {
  netns.remove();
  rmSync(dir, { recursive: true, force: true });
}

function environment(command: string, netns: LabNetns): Record<string, string> {
  return {
    CNI_COMMAND: command,
    CNI_CONTAINERID: "c1",
    CNI_NETNS: netns.path,
    CNI_IFNAME: "eth0",
    CNI_PATH: "/opt/cni/bin",
    CNI_ARGS: argsOf(podName),
  };
}

/** CNI_ARGS as containerd writes them. */
export function argsOf({ namespace, name }: { namespace: string; name: string }): string {
  return `IgnoreUnknown=1;K8S_POD_NAMESPACE=${namespace};K8S_POD_NAME=${name};K8S_POD_UID=${podUid}`;
}

/** linkerd-cni's rendered default, without its families. */
export const chartDefault = {
  "incoming-proxy-port": 4143,
  "outgoing-proxy-port": 4140,
  "proxy-uid": 2102,
  "ports-to-redirect": [],
  "inbound-ports-to-ignore": ["4191", "4190"],
  simulate: false,
  "use-wait-flag": false,
  "iptables-mode": "nft",
  ipv6: false,
} as const;

export type Keys = Readonly<Record<string, unknown>>;

/** What is said in a conf beside what all confs of these tests have. */
export type ConfWish = {
  readonly top?: Keys;
  readonly linkerd?: Keys;
  readonly sluice?: Keys;
  /** The annotations that the runtime hands over; it hands over none otherwise, and the API is asked. */
  readonly annotations?: Readonly<Record<string, string>>;
};

/** The conf of linkerd-cni with another type, as libcni hands it over. */
export function confFor({ dir, kubeconfig }: Attachment, wish: ConfWish = {}) {
  const { top = {}, linkerd = chartDefault, sluice = {}, annotations } = wish;
  const addresses = Object.values(podAddresses).slice(0, linkerd["ipv6"] === true ? 2 : 1);
  return {
    cniVersion: "1.1.0",
    name: "linkerd-cni",
    type: "sluice",
    kubernetes: { kubeconfig },
    linkerd,
    sluice: { "state-dir": join(dir, "state"), ...sluice },
    ...(annotations === undefined
      ? {}
      : { runtimeConfig: { "io.kubernetes.cri.pod-annotations": annotations } }),
    prevResult: { cniVersion: "1.1.0", ips: addresses.map((address) => ({ address })) },
    ...top,
  };
}

/** The mark that the injector leaves, and the annotations given. */
export function injected(annotations: Readonly<Record<string, string>> = {}) {
  return { "linkerd.io/proxy-version": "edge-26.7.1", ...annotations };
}

/** What is in the netns' tables. */
export type Found = {
  /** Our rules and the jumps to them in all backends, without comments and chain declarations. */
  readonly rules: Readonly<Record<Family, readonly string[]>>;
  /** There is not even a table. */
  readonly untouched: boolean;
};

// One child for all: there are many looks.
const saveAll = backends
  .flatMap((backend) => [
    `iptables-${backend}-save`,
    `echo "#"; ip6tables-${backend}-save; echo "#"`,
  ])
  .join("; ");

/** Looks into the pod's netns: every table of both families and backends. */
export function lookInto({ netns }: Pick<Attachment, "netns">): Found {
  const saved = netns.run("sh", ["-c", saveAll]);
  const texts = saved.split(/^#$/m);
  const ours = (family: number) => {
    const text = texts.filter((_, i) => i % 2 === family).join("\n");
    const found = text.matchAll(/^-A .*PROXY_INIT_.*$/gm);
    return [...found].map(([rule]) => content(rule));
  };
  return { rules: { ipv4: ours(0), ipv6: ours(1) }, untouched: !/^\*/m.test(saved) };
}

/** What was logged: each line an object. Throws for a line that is none. */
export function linesOf({ stderr }: Pick<Answer, "stderr">): Record<string, unknown>[] {
  return stderr
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

/** The command's one line. */
export function doneLine(answer: Pick<Answer, "stderr">): Record<string, unknown> | undefined {
  return linesOf(answer).find(({ command }) => command !== undefined);
}

/** The sentences of the warnings. */
export function warningsOf(answer: Pick<Answer, "stderr">): unknown[] {
  return linesOf(answer).flatMap(({ level, msg }) => (level === "warn" ? [msg] : []));
}

function requireNetns(skip: (condition: boolean, note: string) => void): void {
  if (canMakeNetns()) return;
  const reason = "network namespaces need root";
  if (process.env["CI"] !== undefined) throw new Error(reason);
  skip(true, reason);
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    // No directory, no records.
    return [];
  }
}
