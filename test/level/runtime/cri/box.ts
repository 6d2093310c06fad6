// A machine in the machine: processes, mounts, /run, /var/lib, /var/log and a network of its own, for runtimes that would
// change the real ones. It is gone, with all that runs in it, as soon as its first process is: also when a test run is killed.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { execa, execaSync } from "execa";
import { searchPath } from "../../../lab/host.ts";
import { canMakeNetns } from "../../../lab/netns.ts";

export type Outcome = {
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
};

export type RunOptions = {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
};

export type Box = {
  /** Its files, at the same path inside and outside. */
  readonly dir: string;
  /** Where its pods' cgroups belong: removed with it. */
  readonly cgroup: string;
  /** The path by which a file of the box, or a netns, is reached from outside. */
  readonly outside: (path: string) => string;
  /** Runs a program in it to its end. */
  readonly run: (argv: readonly string[], options?: RunOptions) => Promise<Outcome>;
  /** Starts a program in it that stays; what it prints goes to `<dir>/log/<name>.log`. */
  readonly start: (
    name: string,
    argv: readonly string[],
    env?: Readonly<Record<string, string>>,
  ) => Service;
  /** Ends everything in it and removes it. Harmless when it is gone already. */
  readonly remove: () => Promise<void>;
};

/** A program that stays. */
export type Service = {
  /** How it ended; undefined while it runs. */
  readonly ended: () => string | undefined;
  /** The last lines that it printed. */
  readonly tail: () => string;
  readonly stop: (signal?: NodeJS.Signals) => Promise<void>;
};

// The first process in the box waits for the end of its stdin, which is the end of the test's process at the latest.
const first = `
mount -t tmpfs -o mode=755 box /run &&
mount -t tmpfs -o mode=755 box /var/log &&
mkdir /run/netns /run/lock &&
mount --bind "$1/var-lib" /var/lib &&
mount --make-rshared / &&
ip link set lo up &&
echo ready &&
read -r _`;

const unshare = ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--"];

// The kernel takes all that is in the box along with the first process; files and cgroups are left, and go here.
const keeper = `
${unshare.join(" ")} bash -c "$1" box "$2"
cgroup=$(basename "$2")
for tree in /sys/fs/cgroup/"$cgroup" /sys/fs/cgroup/*/"$cgroup"; do
  [ ! -d "$tree" ] || find "$tree" -depth -type d -exec rmdir {} +
done
rm -rf -- "\${2:?}"`;

/** Why no box can be made here; undefined when one can. */
export function boxLack(): string | undefined {
  const trial = [...unshare, "mount", "-t", "tmpfs", "box", "/run"];
  if (!canMakeNetns()) return "namespaces need root";
  const { exitCode, stderr } = execaSync("env", trial, { reject: false });
  return exitCode === 0 ? undefined : `no namespaces of one's own: ${stderr}`;
}

/** Makes a box. Whoever makes it removes it. */
export async function makeBox(purpose: string): Promise<Box> {
  const dir = mkdtempSync(join(tmpdir(), `slc-${purpose}-`));
  for (const name of ["var-lib", "log"]) mkdirSync(join(dir, name));
  // In a session of its own: a Ctrl-C at the terminal must not keep it from cleaning up.
  const child = spawn("bash", ["-c", keeper, "keeper", first, dir], {
    stdio: ["pipe", "pipe", "inherit"],
    detached: true,
    env: { PATH: searchPath },
    cwd: "/",
  });
  const gone = once(child, "close");
  const remove = async () => {
    child.stdin.end();
    await gone;
  };
  const [said] = await Promise.race([once(child.stdout, "data"), gone]);
  if (!String(said).startsWith("ready")) {
    await remove();
    throw new Error(`no box could be made for ${purpose}`);
  }
  const pid = firstChild(firstChild(child.pid ?? 0));
  return { dir, cgroup: `/${basename(dir)}`, remove, ...accessTo(pid, dir) };
}

function accessTo(pid: number, dir: string): Pick<Box, "outside" | "run" | "start"> {
  const enter = (argv: readonly string[]) => {
    return ["--target", String(pid), "--mount", "--net", "--pid", "--", ...argv];
  };
  return {
    outside: (path) => `/proc/${pid}/root${path}`,
    run: async (argv, { env = {}, input = "" } = {}) => {
      const { exitCode, stdout, stderr } = await execa("nsenter", enter(argv), {
        env: { PATH: searchPath, LANG: "C.UTF-8", ...env },
        extendEnv: false,
        cwd: "/",
        input,
        reject: false,
      });
      return { exitCode, stdout, stderr };
    },
    start: (name, argv, env = {}) => {
      const file = join(dir, "log", `${name}.log`);
      const log = openSync(file, "a");
      const child = spawn("nsenter", enter(argv), {
        env: { PATH: searchPath, LANG: "C.UTF-8", ...env },
        stdio: ["ignore", log, log],
        cwd: "/",
      });
      closeSync(log);
      return serviceOf(child, file);
    },
  };
}

function serviceOf(child: ChildProcess, file: string): Service {
  const gone = once(child, "close");
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  return {
    ended: () => (isRunning() ? undefined : `${child.signalCode ?? `exit ${child.exitCode}`}`),
    tail: () => readFileSync(file, "utf8").trimEnd().split("\n").slice(-15).join("\n"),
    stop: async (signal = "SIGTERM") => {
      // The program itself: nsenter waits for it, and passes no signal on.
      if (isRunning()) process.kill(firstChild(child.pid ?? 0), signal);
      await gone;
    },
  };
}

function firstChild(pid: number): number {
  const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ");
  if (child === undefined || child === "") throw new Error(`process ${pid} has no child`);
  return Number(child);
}
