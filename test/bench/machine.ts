// Where a benchmark was run, for its results to be read with. Edge.
import { readFileSync } from "node:fs";
import { cpus, loadavg, release } from "node:os";
import { execaSync } from "execa";

export type Machine = {
  readonly time: string;
  readonly kernel: string;
  readonly cpu: string;
  readonly cpus: number;
  readonly distribution: string;
  readonly iptables: string;
  readonly node: string;
};

/** This machine, now. */
export function thisMachine(node: string): Machine {
  return {
    time: new Date().toISOString(),
    kernel: release(),
    cpu: cpus()[0]?.model ?? "",
    cpus: cpus().length,
    distribution: /^PRETTY_NAME="?([^"\n]*)/m.exec(osRelease())?.[1] ?? "",
    iptables: said("iptables-nft", "--version"),
    node: said(node, "--version"),
  };
}

/** How busy the machine has been in the last minute: processes that wanted to run. */
export function load(): number {
  return Math.round((loadavg()[0] ?? 0) * 100) / 100;
}

function osRelease(): string {
  try {
    return readFileSync("/etc/os-release", "utf8");
  } catch {
    // Not each system has one; it is for the reader only.
    return "";
  }
}

function said(file: string, option: string): string {
  const env = { PATH: `${process.env["PATH"] ?? ""}:/usr/sbin` };
  return execaSync(file, [option], { env, extendEnv: false, reject: false }).stdout ?? "";
}
