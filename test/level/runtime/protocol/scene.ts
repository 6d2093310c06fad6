// What all tests of this folder share: a pod's netns, a state directory, and calls of the built plugin about them, with the
// environment and the stdin that a runtime gives it, or worse ones.
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { test as base } from "vitest";
import { canMakeNetns, type LabNetns, makeNetns } from "../../../lab/netns.ts";
import { bundle, type CniAnswer, executable, node } from "../../../lab/plugin.ts";

/** A program with its first arguments. */
export type Program = readonly [string, ...string[]];

/** Both forms of the plugin. */
export const forms: Readonly<Record<"executable" | "bundle", Program>> = {
  executable: [executable],
  bundle: [node, bundle],
};

export type More = {
  /** Variables, over those of a runtime; undefined takes one away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** What is run; the executable where nothing is said. */
  readonly program?: Program;
};

export type Scene = {
  /** A directory of the test's own. */
  readonly dir: string;
  readonly stateDir: string;
  readonly pod: LabNetns;
  /** A conf that is good for all verbs; `change` replaces keys of it. */
  readonly conf: (change?: object) => object;
  /** One call; an object on stdin is sent as JSON. */
  readonly call: (command: string, stdin: object | string, more?: More) => Promise<CniAnswer>;
  /** The names of the records that are kept. */
  readonly records: () => string[];
};

/** A test with a scene. Skipped, with the reason, where no netns can be made; in CI that is a failure. */
export const test = base.extend("scene", ({ skip }, { onCleanup }): Scene => {
  requireNetns(skip);
  const scene = makeScene("test");
  onCleanup(scene.remove);
  return scene;
});

/** Says why, where no netns can be made. */
export function requireNetns(skip: (condition: boolean, note: string) => void): void {
  if (canMakeNetns()) return;
  const reason = "network namespaces need root";
  if (process.env["CI"] !== undefined) throw new Error(reason);
  skip(true, reason);
}

/** Makes a scene; whoever makes it removes it. */
export function makeScene(purpose: string): Scene & { readonly remove: () => void } {
  const dir = mkdtempSync(join(tmpdir(), `slc-${purpose}-`));
  const stateDir = join(dir, "state");
  const pod = makeNetns(purpose);
  return {
    dir,
    stateDir,
    pod,
    conf: (change = {}) => ({ ...goodConf, sluice: { "state-dir": stateDir }, ...change }),
    call: (command, stdin, more = {}) => {
      const env = { CNI_COMMAND: command, CNI_NETNS: pod.path, ...attachment, ...more.env };
      return run(more.program ?? forms.executable, env, stdin);
    },
    records: () => namesIn(join(stateDir, "attachments")),
    remove: () => {
      pod.remove();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

const attachment = {
  CNI_CONTAINERID: "c1",
  CNI_IFNAME: "eth0",
  CNI_PATH: "/opt/cni/bin",
  PATH: process.env["PATH"],
};

export const linkerd = {
  "incoming-proxy-port": 4143,
  "outgoing-proxy-port": 4140,
  "proxy-uid": 2102,
  "iptables-mode": "nft",
} as const;

export const prevResult = { cniVersion: "1.1.0", ips: [{ address: "10.9.0.2/24" }] };

const goodConf = { cniVersion: "1.1.0", name: "lab", type: "sluice", linkerd, prevResult };

/** Runs a program with nothing but this environment. */
export async function run(
  [file, ...args]: Program,
  env: Readonly<Record<string, string | undefined>>,
  stdin: object | string,
): Promise<CniAnswer> {
  const set = Object.entries(env).filter((entry): entry is [string, string] => {
    return entry[1] !== undefined;
  });
  const { exitCode, stdout, stderr } = await execa(file, args, {
    env: Object.fromEntries(set),
    extendEnv: false,
    input: textOf(stdin),
    reject: false,
    stripFinalNewline: false,
  });
  return { exitCode, stdout, stderr };
}

function textOf(stdin: object | string): string | Uint8Array {
  return typeof stdin === "string" || stdin instanceof Uint8Array ? stdin : JSON.stringify(stdin);
}

/** What a call says on stdout when it fails. */
export function failure(code: number, msg: string, details = ""): string {
  return JSON.stringify({ cniVersion: "1.1.0", code, msg, ...(details === "" ? {} : { details }) });
}

/** Log lines, each a JSON object: there is nothing else on stderr or in the log file. */
export function linesOf(log: string): Record<string, unknown>[] {
  const lines = log.split("\n").filter((line) => line !== "");
  return lines.map((line): Record<string, unknown> => JSON.parse(line));
}

/** The one line that a call logs about itself, without what differs from call to call. */
export function commandLine({ stderr }: CniAnswer): Record<string, unknown> | undefined {
  const [line, ...more] = linesOf(stderr).filter((one) => "command" in one);
  if (more.length > 0) throw new Error(`more than one line of the command:\n${stderr}`);
  const { time, pid, durationMs, err, ...rest } = line ?? {};
  return rest;
}

function namesIn(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory) : [];
}
