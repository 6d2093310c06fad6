// A node whose iptables programs are made up: a directory that stands in for /usr/sbin, in a mount namespace which the
// plugin alone sees. Each program is a real one of the machine, or a shell script that notes how it was called.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * A program: the machine's own of that name, or a shell script. In it, `$real` is where the machine's own are, and `$dir`
 * the directory of all of it.
 */
export type Tool = { readonly link: string } | { readonly script: string };

/** The programs of a node, by name. A name that is not there is a program that the node lacks. */
export type Tools = Readonly<Record<string, Tool>>;

export type FakeTools = {
  /** The directory of all of it. */
  readonly dir: string;
  /** Makes these the node's programs, and forgets the calls so far. */
  readonly install: (tools: Tools) => void;
  /** How the scripts were called so far, one line a call: name and arguments. */
  readonly calls: () => string[];
  /** All that was given to `restore` scripts on stdin. */
  readonly input: () => string;
  /** Shell lines that put the programs in the place of the machine's; for a mount namespace of its own. */
  readonly mounting: string;
  readonly remove: () => void;
};

/** Makes a node's directory; without more, its programs are the machine's own of both backends. */
export function makeFakeTools(): FakeTools {
  const dir = mkdtempSync(join(tmpdir(), "slc-tools-"));
  const file = (name: string) => join(dir, name);
  const install = (tools: Tools) => {
    rmSync(file("sbin"), { recursive: true, force: true });
    for (const name of ["sbin", "real"]) mkdirSync(file(name), { recursive: true });
    for (const name of ["calls", "input"]) writeFileSync(file(name), "");
    for (const [name, tool] of Object.entries(tools)) place(dir, name, tool);
  };
  install(realTools);
  return {
    dir,
    install,
    calls: () => linesOf(file("calls")),
    input: () => readFileSync(file("input"), "utf8"),
    mounting: `mount --bind /usr/sbin ${file("real")}\nmount --bind ${file("sbin")} /usr/sbin`,
    remove: () => rmSync(dir, { recursive: true, force: true }),
  };
}

/** The machine's own programs under these names. */
export function realOnes(names: readonly string[]): Tools {
  return Object.fromEntries(names.map((name) => [name, { link: name }]));
}

/** The names of the programs that the plugin may call: of one backend (`-nft`), or the plain ones (``). */
export function namesOf(suffix: string, prefixes = ["iptables", "ip6tables"]): string[] {
  return prefixes.flatMap((prefix) => [`${prefix}${suffix}-restore`, `${prefix}${suffix}-save`]);
}

/** The machine's own programs of both backends, under the names that tell it. */
export const realTools: Tools = realOnes([...namesOf("-nft"), ...namesOf("-legacy")]);

/** What a script says and how it ends. */
export type Words = {
  readonly stdout?: string;
  readonly stderr?: string;
  readonly exitCode?: number;
};

/** Reads its input to the end, says its words and ends. */
export function says({ stdout = "", stderr = "", exitCode = 0 }: Words): Tool {
  return { script: `${takeInput}\n${speak({ stdout, stderr })}\nexit ${exitCode}` };
}

/** Says its words to the first calls (not counting `--version`), and does what the machine's own does from then on. */
export function saysFirst(times: number, words: Words, then: string): Tool {
  const count = `[ "$(grep -c "^\${0##*/} " "$dir/calls")" -gt ${times} ]`;
  const ending = `${takeInput}\n${speak(words)}\nexit ${words.exitCode ?? 0}`;
  return { script: `${count} && exec "$real/${then}" "$@"\n${ending}` };
}

/** Does what the machine's own does, except where its input has this text: then it says its words and ends. */
export function refusing(text: string, words: Words, otherwise: string): Tool {
  const script = [
    "text=$(cat)",
    `case $text in *${shellQuote(text)}*) ${speak(words).trim()}\nexit ${words.exitCode ?? 1} ;; esac`,
    `printf '%s\\n' "$text" | "$real/${otherwise}" "$@"`,
  ];
  return { script: script.join("\n") };
}

/** Answers `--version` with a text, and else does as `then` does. */
export function versioned(version: string, then: Tool): Tool {
  const answer = `[ "$1" = --version ] && { printf '%s\\n' ${shellQuote(version)}; exit 0; }`;
  return { script: `${answer}\n${scriptOf(then)}` };
}

const takeInput = 'case $0 in *-restore) cat >>"$dir/input" ;; esac';

function speak({ stdout = "", stderr = "" }: Words): string {
  return `printf %s ${shellQuote(stdout)}\nprintf %s ${shellQuote(stderr)} >&2`;
}

function place(dir: string, name: string, tool: Tool): void {
  const path = join(dir, "sbin", name);
  if ("link" in tool) {
    symlinkSync(join(dir, "real", tool.link), path);
    return;
  }
  const noting = `echo "\${0##*/} $*" >>"$dir/calls"`;
  const head = `#!/bin/sh\ndir=${dir} real=${dir}/real\n${noting}`;
  writeFileSync(path, `${head}\n${tool.script}\n`, { mode: 0o755 });
}

function scriptOf(tool: Tool): string {
  return "link" in tool ? `exec "$real/${tool.link}" "$@"` : tool.script;
}

function linesOf(file: string): string[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "");
}

function shellQuote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
