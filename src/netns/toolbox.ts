// The programs that work is done with, and the environment that they are run in. Edge: looks at files, starts nothing.
// The node's own are one toolbox; a bundle of tools that is brought along can be another.
import { accessSync, constants, existsSync } from "node:fs";
import { delimiter } from "node:path";

export type Toolbox = {
  /** The absolute path of a program; undefined where there is none. */
  readonly find: (name: string) => string | undefined;
  /** The shell that scripts are run by. */
  readonly shell: string;
  /** The environment of every child: nothing of the runtime's own is in it. */
  readonly env: Readonly<Record<string, string>>;
};

/** Where programs are looked for after PATH: runtimes' own PATH often lacks sbin, and may be empty. */
const usualDirectories = [
  "/usr/local/sbin",
  "/usr/sbin",
  "/sbin",
  "/usr/local/bin",
  "/usr/bin",
  "/bin",
];

/** The node's own programs, where the runtime has this PATH. */
export function nodeToolbox(path: string | undefined): Toolbox {
  const searched = searchPath(path);
  // LC_ALL: what tools say is read by netfilter/iptables/failure.ts.
  return {
    find: programFinder(searched),
    shell: "/bin/sh",
    env: { PATH: searched, LC_ALL: "C" },
  };
}

/** The search path for children, and for finding them. */
export function searchPath(path: string | undefined): string {
  const given = (path ?? "").split(delimiter).filter((directory) => directory.startsWith("/"));
  return [...new Set([...given, ...usualDirectories])].join(delimiter);
}

/** Looks programs up along a search path, as execvp does. */
export function programFinder(path: string): Toolbox["find"] {
  const directories = path.split(delimiter);
  return (name) => directories.map((directory) => `${directory}/${name}`).find(isProgram);
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

/** The words that run a command in a netns. @param handle where another process finds the open netns (see path.ts). */
export function entering({ find }: Toolbox, handle: string): [string, ...string[]] {
  return [find("nsenter") ?? "nsenter", `--net=${handle}`, "--"];
}
