// What these tests share: a node (a netns that plays the host, with programs of its own), a pod on it, and the plugin called
// as a runtime on that node would. Slow calls can run side by side: nothing here blocks.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import type { Family } from "../../../src/netfilter/table.ts";
import { type FakeTools, makeFakeTools } from "../../lab/fake-tools.ts";
import { canMakeNetns, type LabNetns, makeNetns } from "../../lab/netns.ts";
import { type CniAnswer, plugin } from "../../lab/plugin.ts";
import { addressOf, confOf, test as level } from "../netns/level.ts";

/** An answer, and how long it took until the plugin's stdout and stderr were closed. */
export type TimedAnswer = CniAnswer & { readonly durationMs: number };

export type Node = {
  readonly host: LabNetns;
  readonly pod: LabNetns;
  readonly tools: FakeTools;
  readonly stateDir: string;
  /** One call about the pod (or `other` netns), made on the node. `setup`: shell lines run before, as root of the node. */
  readonly call: (command: string, conf: object, more?: CallMore) => Promise<TimedAnswer>;
  /** Runs a shell script in the pod's netns, with a mount namespace of its own, and gives its stdout. */
  readonly run: (script: string) => Promise<string>;
  /** A file of the state directory as JSON; undefined when it is not there. */
  readonly stateFile: (name: string) => unknown;
};

export type CallMore = { readonly setup?: string; readonly netns?: LabNetns };

/** A node for a test that makes its own arrangements. */
export function makeNode(): Node & { readonly remove: () => void } {
  const [host, pod] = [makeNetns("host"), makeNetns("pod")];
  const tools = makeFakeTools();
  const stateDir = mkdtempSync(join(tmpdir(), "slc-state-"));
  const call: Node["call"] = async (command, conf, { setup = "", netns = pod } = {}) => {
    const began = performance.now();
    const environment = cniEnvironment(command, netns, netns === pod ? "c1" : "c2");
    const script = `set -e\n${tools.mounting}\n${setup}\nexec env -i "$@"`;
    const argv = ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c", script, "sh"];
    const result = await execa(
      "nsenter",
      [`--net=${host.path}`, "--", ...argv, ...environment, plugin],
      {
        input: JSON.stringify({ ...conf, sluice: { "state-dir": stateDir, ...sluiceOf(conf) } }),
        reject: false,
        stripFinalNewline: false,
      },
    );
    const durationMs = performance.now() - began;
    return { exitCode: result.exitCode, stdout: result.stdout, stderr: result.stderr, durationMs };
  };
  return {
    host,
    pod,
    tools,
    stateDir,
    call,
    run: async (script) => {
      const argv = ["unshare", "--mount", "--", "sh", "-ec", script];
      return (await execa("nsenter", [`--net=${pod.path}`, "--", ...argv])).stdout;
    },
    stateFile: (name) => jsonIn(join(stateDir, name)),
    remove: () => {
      for (const netns of [host, pod]) netns.remove();
      tools.remove();
      rmSync(stateDir, { recursive: true, force: true });
    },
  };
}

/** A test that is given a node, with a pod on it that has no rules yet. */
export const test = level.extend("node", ({ skip }, { onCleanup }): Node => {
  requireRoot(skip);
  const node = makeNode();
  onCleanup(node.remove);
  return node;
});

/** Skips a test where no netns can be made; in CI that is a failure. */
export function requireRoot(skip: Skip): void {
  requireThat(canMakeNetns(), "network namespaces need root", skip);
}

/** Skips a test, with the reason, when the machine lacks what it needs; in CI that is a failure. */
export function requireThat(met: boolean, reason: string, skip: Skip): void {
  if (met) return;
  if (process.env["CI"] !== undefined) throw new Error(reason);
  skip(true, reason);
}

type Skip = (condition: boolean, note: string) => void;

/** A conf that leaves the choice of the backend, for pods of these families. */
export function freeConf(...of: readonly Family[]) {
  return confOf({ addresses: of.map((family) => addressOf[family]) });
}

/** The lines that a call logged, without what differs from call to call. */
export function logLines({ stderr }: CniAnswer): Record<string, unknown>[] {
  return stderr
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => {
      const fields: Record<string, unknown> = JSON.parse(line);
      const { time, pid, durationMs, ...rest } = fields;
      return rest;
    });
}

/** The time that the plugin itself counted, without what it takes to start it on a busy machine. */
export function ownMs({ stderr }: CniAnswer): number {
  return Number(/"durationMs":([\d.]+)/.exec(stderr)?.[1]);
}

/** The error that an ADD is to print: `details` stands for itself. */
export function errorJson(code: number, msg: string, details: string): string {
  return JSON.stringify({ cniVersion: "1.1.0", code, msg, details });
}

function cniEnvironment(command: string, netns: LabNetns, containerId: string): string[] {
  const variables = {
    COMMAND: command,
    CONTAINERID: containerId,
    NETNS: netns.path,
    IFNAME: "eth0",
    PATH: "/opt/cni/bin",
  };
  const cni = Object.entries(variables).map(([key, value]) => `CNI_${key}=${value}`);
  return [`PATH=${process.env["PATH"] ?? ""}`, ...cni];
}

function sluiceOf(conf: object): object {
  return "sluice" in conf && typeof conf.sluice === "object" && conf.sluice !== null
    ? conf.sluice
    : {};
}

function jsonIn(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    // Not there.
    return undefined;
  }
}
