// What the node in a box knows and holds of its pods: what our plugin logged, and what it and others keep.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { execaSync } from "execa";
import { savedNat } from "../../../lab/pod-nat.ts";
import { ownLines } from "../../../lab/states.ts";
import type { Box } from "./box.ts";

/** One command as our plugin logged it; VERSION is not logged. */
export type LoggedCommand = {
  readonly command: string;
  readonly level: string;
  readonly pod: { readonly namespace: string; readonly name: string };
  readonly skipped?: string;
};

/** Where a chain that is to be looked at has our plugin log to: its `log_file`. */
export function logFile({ dir }: Box): string {
  return join(dir, "sluice.log");
}

/** The commands that were logged, in their order. */
export function logged(box: Box): LoggedCommand[] {
  if (!existsSync(logFile(box))) return [];
  const lines = readFileSync(logFile(box), "utf8").split("\n").filter(Boolean);
  const read = lines.map((line): Partial<LoggedCommand> => JSON.parse(line));
  return read.filter((line): line is LoggedCommand => line.command !== undefined);
}

/** All that there is of pods on the node. */
export type Kept = {
  /** Ours. */
  readonly records: string[];
  /** host-local's addresses. */
  readonly leases: string[];
  /** libcni's results. */
  readonly results: string[];
  readonly netns: string[];
};

export const nothingKept: Kept = { records: [], leases: [], results: [], netns: [] };

/** What the node holds of the pods of a network. */
export function kept(box: Box, network: string): Kept {
  const namesIn = (path: string) => {
    const dir = box.outside(path);
    return existsSync(dir) ? readdirSync(dir).toSorted() : [];
  };
  return {
    records: namesIn("/run/sluice/attachments"),
    leases: namesIn(`/var/lib/cni/networks/${network}`).filter((name) => /^\d|:/.test(name)),
    results: namesIn("/var/lib/cni/results").filter((name) => !name.includes("cni-loopback")),
    netns: namesIn("/run/netns"),
  };
}

/** How many connections the redirect of a netns took out of it, as its counter says. */
export function countedRedirects(box: Box, netns: string): number {
  const tables = ["nft", "legacy"].map((backend) => {
    const argv = [`--net=${box.outside(netns)}`, `iptables-${backend}-save`, "--counters"];
    return execaSync("nsenter", argv).stdout;
  });
  const counter = /^\[(\d+):\d+\] -A PROXY_INIT_OUTPUT .*-j REDIRECT/m;
  return Number(counter.exec(tables.join("\n"))?.[1]);
}

/** What our plugin remembers of an attachment, as far as tests look at it. */
export type KeptRecord = { readonly backend: string; readonly backendReason: string };

/** The record of an attachment; throws when there is none. */
export function recordOf(box: Box, network: string, containerId: string): KeptRecord {
  const file = `/run/sluice/attachments/${network},${containerId},eth0.json`;
  return JSON.parse(readFileSync(box.outside(file), "utf8"));
}

/** What is ours of the nat rules in a netns that the box names by this path. */
export function rulesIn(box: Box, netns: string, family: "ipv4" | "ipv6" = "ipv4"): string[] {
  return ownLines(savedNat({ path: box.outside(netns) }, family));
}
