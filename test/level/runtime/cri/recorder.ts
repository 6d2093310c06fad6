// A plugin in front of ours that keeps what each call was given, VERSION's too, and then lets ours do its work.
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { plugin } from "../../../lab/plugin.ts";

export type Recorded = {
  readonly verb: string;
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: string;
};

const script = `#!/bin/sh
here=$(dirname "$0")
call=$here/calls/$(date +%s%N)
mkdir "$call"
env -0 >"$call/env"
tee "$call/stdin" | "$here/sluice.real"
`;

/** Puts ours, with the recorder in front, into a directory of plugins. */
export function installRecorder(binDir: string): void {
  mkdirSync(join(binDir, "calls"));
  symlinkSync(plugin, join(binDir, "sluice.real"));
  writeFileSync(join(binDir, "sluice"), script, { mode: 0o755 });
}

/** The calls that are over, in their order. */
export function recorded(binDir: string): Recorded[] {
  const calls = join(binDir, "calls");
  return readdirSync(calls)
    .toSorted()
    .map((name) => {
      const pairs = readFileSync(join(calls, name, "env"), "utf8")
        .split("\0")
        .filter(Boolean);
      const env = Object.fromEntries(pairs.map((pair) => splitAt(pair, pair.indexOf("="))));
      const stdin = readFileSync(join(calls, name, "stdin"), "utf8");
      return { verb: env["CNI_COMMAND"] ?? "", env, stdin };
    });
}

function splitAt(text: string, at: number): [string, string] {
  return [text.slice(0, at), text.slice(at + 1)];
}
