// Finds the host's programs. Edge: looks at the file system, runs nothing.
import { accessSync, constants, realpathSync } from "node:fs";
import { delimiter, join } from "node:path";
import type { Backend, Family } from "./table.ts";

/** Gives the absolute path of a program, or undefined. */
export type FindProgram = (name: string) => string | undefined;

/** The pair of programs that writes and reads one family through one backend. */
export type Tools = { readonly restore: string; readonly save: string };

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
  return (name) => directories.map((directory) => join(directory, name)).find(isExecutable);
}

/** The tools of a backend for a family, under their own names, or as the plain names when those are of that backend. */
export function findTools(find: FindProgram, backend: Backend, family: Family): Tools | undefined {
  return pair(find, `${prefix(family)}-${backend}`) ?? plainOf(find, backend, family);
}

/** The tools under the plain names, whichever backend they are of. */
export function findPlainTools(
  find: FindProgram,
  family: Family,
): { tools: Tools; backend: Backend } | undefined {
  const tools = pair(find, prefix(family));
  return tools === undefined ? undefined : { tools, backend: backendOf(tools.restore) };
}

function plainOf(find: FindProgram, backend: Backend, family: Family): Tools | undefined {
  const plain = findPlainTools(find, family);
  return plain?.backend === backend ? plain.tools : undefined;
}

function pair(find: FindProgram, name: string): Tools | undefined {
  const [restore, save] = [find(`${name}-restore`), find(`${name}-save`)];
  return restore === undefined || save === undefined ? undefined : { restore, save };
}

function prefix(family: Family): string {
  return family === "ipv4" ? "iptables" : "ip6tables";
}

// The plain name is a link to xtables-nft-multi, xtables-legacy-multi, or (before 1.8) xtables-multi, which is legacy.
function backendOf(program: string): Backend {
  return realpathSync(program).includes("nft") ? "nft" : "legacy";
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    // Not there, or not to be run: either way not the program that is looked for.
    return false;
  }
}
