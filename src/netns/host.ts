// What the node offers to work with: its programs, and how it looks up users. Edge: reads files, starts nothing.
import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import { delimiter } from "node:path";
import type { Exec } from "./exec.ts";
import type { Capability } from "./rights.ts";

/** Gives the absolute path of a program, or undefined. */
export type FindProgram = (name: string) => string | undefined;

/** The node, as far as children are started on it. */
export type Host = {
  readonly exec: Exec;
  readonly find: FindProgram;
  /** The children's PATH. */
  readonly path: string;
  /** Files that children must not see when they look up users: see nssMask. */
  readonly nssMask: () => readonly string[];
  /** True for a right that children run without; not there where nobody looks. */
  readonly lacks?: (capability: Capability) => boolean;
};

/** With what, and for how long, to look into a netns. */
export type Looking = { readonly host: Host; readonly timeoutMs: number };

/** Where programs are looked for after PATH: runtimes' own PATH often lacks sbin, and may be empty. */
const usualDirectories = [
  "/usr/local/sbin",
  "/usr/sbin",
  "/sbin",
  "/usr/local/bin",
  "/usr/bin",
  "/bin",
];

/** The search path for children, and for finding them. */
export function searchPath(path: string | undefined): string {
  const given = (path ?? "").split(delimiter).filter((directory) => directory.startsWith("/"));
  return [...new Set([...given, ...usualDirectories])].join(delimiter);
}

/** Looks programs up along a search path, as execvp does. */
export function programFinder(path: string): FindProgram {
  const directories = path.split(delimiter);
  return (name) => directories.map((directory) => `${directory}/${name}`).find(isProgram);
}

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

function isProgram(file: string): boolean {
  // Asked first, since most are not there: an error that is thrown takes ten times as long.
  if (!existsSync(file)) return false;
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    // Not to be run: not the program that is looked for.
    return false;
  }
}
