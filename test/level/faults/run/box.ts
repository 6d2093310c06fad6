// A node that something can be taken from: a mount namespace with a state directory of its own, on a file system that can be
// filled up or made read-only, and calls that are made under limits.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { type Backend, type Family, families } from "../../../../src/netfilter/table.ts";
import { type LabNetns, makeNetns } from "../../../lab/netns.ts";
import { plugin } from "../../../lab/plugin.ts";
import { confOf, environmentOf, type Subject } from "./call.ts";

/** How a call ended: its exit status, or nothing where a limit killed it, or where it did not end in time. */
export type BoxAnswer = {
  readonly exitCode: number | undefined;
  readonly inTime: boolean;
  readonly stdout: string;
  readonly stderr: string;
};

export type Box = {
  readonly netns: LabNetns;
  readonly backend: Backend;
  /** One call; `setup` are shell lines before it, in the same process. */
  readonly call: (command: string, setup?: string) => Promise<BoxAnswer>;
  /** Runs shell lines inside (`$state`: the state directory, `$box`: a name of its own). Gives stdout; throws when it fails. */
  readonly run: (script: string) => Promise<string>;
  /** Shell lines that every restore program runs when it has done its work; "" for none. */
  readonly afterRestore: (script: string) => void;
  readonly remove: () => void;
};

/** So long a call may take at most: its own deadline is 20 seconds. */
const patienceMs = 60_000;

/** Makes the box, with a state directory of a hundred files and a megabyte. */
export async function makeBox(backend: Backend): Promise<Box> {
  const netns = makeNetns("box");
  const dir = mkdtempSync(join(tmpdir(), "slc-box-"));
  const subject: Subject = { netns, backend, stateDir: join(dir, "state"), mark: join(dir, "bin") };
  for (const name of ["state", "bin"]) mkdirSync(join(dir, name));
  const keeper = keepMounts(subject.stateDir);
  const inside = ["nsenter", `--mount=/proc/${keeper.pid}/ns/mnt`, "--"] as const;
  const box: Box = {
    netns,
    backend,
    call: async (command, setup = "") => await callInside({ inside, subject }, command, setup),
    run: async (script) => {
      const [file, ...args] = inside;
      const shell = ["sh", "-ec", `${namesOf(subject)}\n${script}`];
      return (await execa(file, [...args, ...shell])).stdout;
    },
    afterRestore: (script) => {
      for (const family of families) putRestore(subject, family, script);
    },
    remove: () => {
      keeper.kill("SIGKILL");
      netns.remove();
      rmSync(dir, { recursive: true, force: true });
    },
  };
  try {
    await once(keeper, "spawn");
    // The namespace is there when its first line is.
    if (keeper.stdout !== null) await once(keeper.stdout, "data");
  } catch (error) {
    box.remove();
    throw error;
  }
  return box;
}

// A process that holds the mounts until it is killed.
function keepMounts(stateDir: string): ChildProcess {
  const mounting = `mount -t tmpfs -o size=1m,nr_inodes=100,mode=700 slc "${stateDir}"`;
  const script = `${mounting} && echo ready && exec sleep 600`;
  return spawn("unshare", ["--mount", "--propagation", "private", "--", "sh", "-ec", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
}

/** Shell lines that set the words which scripts may use. */
function namesOf({ stateDir, netns }: Subject): string {
  return `state=${stateDir}\nbox=${netns.name}`;
}

type Where = { readonly inside: readonly [string, ...string[]]; readonly subject: Subject };

async function callInside(
  { inside: [file, ...args], subject }: Where,
  command: string,
  setup: string,
): Promise<BoxAnswer> {
  const variables = Object.entries(environmentOf(command, subject)).map(
    ([key, value]) => `${key}=${value}`,
  );
  const script = `${namesOf(subject)}\n${setup}\nexec env -i "$@"`;
  const shell = ["sh", "-c", script, "sh", ...variables, plugin];
  const result = await execa(file, [...args, ...shell], {
    input: confOf(subject),
    reject: false,
    stripFinalNewline: false,
    timeout: patienceMs,
    killSignal: "SIGKILL",
  });
  const { exitCode, stdout, stderr, timedOut } = result;
  return { exitCode, stdout, stderr, inTime: !timedOut };
}

function putRestore(subject: Subject, family: Family, then: string): void {
  const { backend, mark = "" } = subject;
  const name = `${family === "ipv4" ? "iptables" : "ip6tables"}-${backend}-restore`;
  const file = join(mark, name);
  const lines = ["#!/bin/sh", namesOf(subject), `/usr/sbin/${name} "$@"`, "status=$?", then];
  if (then === "") rmSync(file, { force: true });
  else writeFileSync(file, `${[...lines, "exit $status"].join("\n")}\n`, { mode: 0o755 });
}
