// What all tests of this level share: a test with an attachment of its own, in a netns of its own, and calls about it.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execaSync } from "execa";
import { test as base } from "vitest";
import { type Backend, backends, type Family, families } from "../../../src/netfilter/table.ts";
import { canMakeNetns, type LabNetns, makeNetns } from "../../lab/netns.ts";
import { type CniAnswer, callPlugin, plugin } from "../../lab/plugin.ts";
import { linkerd } from "../../lab/states.ts";

/** An attachment under test. */
export type Attachment = {
  readonly netns: LabNetns;
  readonly stateDir: string;
  /** One call about it, as a runtime on the node makes it. `env` takes precedence. */
  readonly call: (
    command: string,
    conf: object | string,
    env?: Readonly<Record<string, string>>,
  ) => CniAnswer;
  /** The same call, made by a runtime that lives in the attachment's own netns. */
  readonly callInside: Attachment["call"];
  /** The names of the records that are kept. */
  readonly records: () => string[];
  /** The attachment's record as JSON; undefined when there is none. */
  readonly record: () => Readonly<Record<string, unknown>> | undefined;
};

/**
 * A test that is given an attachment, and another netns if it asks for one. Skipped, with the reason, where no netns can
 * be made; in CI that is a failure.
 */
export const test = base
  .extend("other", ({ skip }, { onCleanup }): LabNetns => {
    requireNetns(skip);
    const netns = makeNetns("other");
    onCleanup(netns.remove);
    return netns;
  })
  .extend("attachment", ({ skip }, { onCleanup }): Attachment => {
    requireNetns(skip);
    const netns = makeNetns("test");
    const stateDir = mkdtempSync(join(tmpdir(), "slc-state-"));
    onCleanup(() => {
      netns.remove();
      rmSync(stateDir, { recursive: true, force: true });
    });
    const environment = {
      CONTAINERID: "c1",
      NETNS: netns.path,
      IFNAME: "eth0",
      PATH: "/opt/cni/bin",
    };
    return {
      netns,
      stateDir,
      call: (command, conf, env = {}) =>
        callPlugin({ ...environment, COMMAND: command, ...env }, inState(conf, stateDir)),
      callInside: (command, conf, env = {}) =>
        callInside(netns, { ...environment, COMMAND: command, ...env }, inState(conf, stateDir)),
      records: () => filesIn(join(stateDir, "attachments")),
      record: () => {
        const [name] = filesIn(join(stateDir, "attachments"));
        if (name === undefined) return undefined;
        return JSON.parse(readFileSync(join(stateDir, "attachments", name), "utf8"));
      },
    };
  });

function requireNetns(skip: (condition: boolean, note: string) => void): void {
  if (canMakeNetns()) return;
  const reason = "network namespaces need root";
  if (process.env["CI"] !== undefined) throw new Error(reason);
  skip(true, reason);
}

/** Each backend with each family. */
export const places: readonly { readonly backend: Backend; readonly family: Family }[] =
  backends.flatMap((backend) => families.map((family) => ({ backend, family })));

/** The addresses that prevResult names for a family. */
export const addressOf: Readonly<Record<Family, string>> = {
  ipv4: "10.9.0.2/24",
  ipv6: "fd00:9::2/64",
};

/** Rows for `test.for`, each after its name: `%s` in a title prints it whole, which `$name` does not. */
export function named<T>(rows: readonly T[], nameOf: (row: T) => string): (readonly [string, T])[] {
  return rows.map((row) => [nameOf(row), row] as const);
}

/** What a plugin conf is made of. */
export type ConfParts = {
  readonly linkerd?: Readonly<Record<string, unknown>>;
  readonly addresses?: readonly string[];
  readonly sluice?: Readonly<Record<string, unknown>>;
};

/** A plugin conf; without more, the one that the states of test/lab/states.ts are about, for an IPv4 pod. */
export function confOf(parts: ConfParts = {}) {
  const { addresses = [addressOf.ipv4], sluice = {} } = parts;
  return {
    cniVersion: "1.1.0",
    name: "lab",
    type: "sluice",
    linkerd: parts.linkerd ?? linkerd,
    sluice,
    prevResult: { cniVersion: "1.1.0", ips: addresses.map((address) => ({ address })) },
  };
}

/** The conf of the states, for one backend and the families named. */
export function stateConf(backend: Backend, ...of: readonly Family[]) {
  return confOf({
    linkerd: { ...linkerd, "iptables-mode": backend },
    addresses: of.map((family) => addressOf[family]),
  });
}

/** The one line that a call logs about itself, without what differs from call to call. */
export function logLine({ stderr }: CniAnswer): Record<string, unknown> {
  const lines = stderr.split("\n").filter((line) => line.includes('"command":'));
  const line: Record<string, unknown> = JSON.parse(lines[0] ?? "{}");
  const { time, pid, durationMs, err, ...rest } = line;
  return rest;
}

const everything = `
nft --handle list ruleset
iptables-legacy-save --counters
ip6tables-legacy-save --counters`;

/** All that the kernel holds for this netns, in both backends and families: rules, handles, counters. */
export function kernelState(netns: LabNetns): string {
  const text = netns.run("sh", ["-ec", everything]);
  return text.replaceAll(/^# (?:Generated|Completed|Warning).*\n?/gm, "").trim();
}

function inState(conf: object | string, stateDir: string): object | string {
  if (typeof conf === "string") return conf;
  const own = "sluice" in conf && typeof conf.sluice === "object" ? conf.sluice : {};
  return { ...conf, sluice: { "state-dir": stateDir, ...own } };
}

function callInside(
  netns: LabNetns,
  env: Readonly<Record<string, string>>,
  conf: object | string,
): CniAnswer {
  const cni = Object.entries(env).map(([key, value]) => `CNI_${key}=${value}`);
  const input = typeof conf === "string" ? conf : JSON.stringify(conf);
  const argv = [`--net=${netns.path}`, "--", "env", "-i", `PATH=${process.env["PATH"] ?? ""}`];
  const result = execaSync("nsenter", [...argv, ...cni, plugin], {
    input,
    reject: false,
    stripFinalNewline: false,
    timeout: 30_000,
  });
  return { exitCode: result.exitCode, stdout: result.stdout, stderr: result.stderr };
}

function filesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    // No directory, no records.
    return [];
  }
}
