// What children are started with, and how the node looks up users. Edge: reads files, starts nothing.
import { existsSync, readFileSync } from "node:fs";
import type { Exec } from "./exec.ts";
import type { Capability } from "./rights.ts";
import type { Toolbox } from "./toolbox.ts";

/** The node, as far as children are started on it. */
export type Host = {
  readonly exec: Exec;
  /** With which programs, and under which environment. */
  readonly toolbox: Toolbox;
  /** Files that children must not see when they look up users: see nssMask. */
  readonly nssMask: () => readonly string[];
  /** True for a right that children run without; not there where nobody looks. */
  readonly lacks?: (capability: Capability) => boolean;
};

/** With what, and for how long, to look into a netns. */
export type Looking = { readonly host: Host; readonly timeoutMs: number };

const nsswitch = "/etc/nsswitch.conf";
const nscdSocket = "/var/run/nscd/socket";

/**
 * iptables asks getpwnam for the user of `--uid-owner 2102`, although that is a number; where users come from the network,
 * each ADD then waits for a server that a half-made pod's netns cannot reach (istio#48416: 40 to 60 s). The children are
 * kept from asking by an empty file in the place of these; none where users only come from the node itself. Looked up when
 * first asked for.
 */
export function nssMasker(): () => readonly string[] {
  let known: readonly string[] | undefined;
  return () => {
    known ??= nssMask();
    return known;
  };
}

function nssMask(): string[] {
  const conf = existsSync(nsswitch) ? readFileSync(nsswitch, "utf8") : "";
  const caching = existsSync(nscdSocket) ? [nscdSocket] : [];
  return asksNetwork(conf) || caching.length > 0
    ? [...caching, ...(conf === "" ? [] : [nsswitch])]
    : [];
}

/** Sources that answer from the node's own files, or from a service on it that never asks further. */
const localSources = ["files", "compat", "systemd", "altfiles", "extrausers", "db"];

/** True when nsswitch.conf's text has users or groups come from more than the node itself. */
export function asksNetwork(conf: string): boolean {
  // Line by line, and up to the next bracket: linear also in a text of blanks or brackets alone.
  const lists = conf.split("\n").map((line) => /^\s*(?:passwd|group)\s*:([^#]*)/.exec(line)?.[1]);
  const sources = lists.flatMap((list) =>
    (list ?? "").replaceAll(/\[[^\][]*\]/g, " ").split(/\s+/),
  );
  return sources.some((source) => source !== "" && !localSources.includes(source));
}
