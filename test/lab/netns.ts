// Throw-away network namespaces. All of a test's work on the kernel happens in one of these, never in the node's own.
import { readdirSync } from "node:fs";
import { execaSync } from "execa";

/** A netns that the test made. */
export type LabNetns = {
  readonly name: string;
  readonly path: string;
  /** Runs a program inside and gives its stdout; throws when it fails. */
  readonly run: (file: string, args: readonly string[], input?: string) => string;
  readonly remove: () => void;
};

/** All of them begin so: whatever is left behind can be told from others'. */
export const prefix = "slc-";

// The legacy tools of a lab wait for no program of the machine, and none waits for them.
const ownLock = { XTABLES_LOCKFILE: "/proc/self/ns/net" };

let count = 0;

/** Makes a netns with lo up. Its name says whose it is: this process', and for what. */
export function makeNetns(purpose: string): LabNetns {
  count += 1;
  const name = `${prefix}${process.pid}-${count}-${purpose}`;
  execaSync("ip", ["netns", "add", name]);
  execaSync("ip", ["-n", name, "link", "set", "lo", "up"]);
  const path = `/run/netns/${name}`;
  // nsenter and not `ip netns exec`, which mounts a /sys each time.
  const run = (file: string, args: readonly string[], input = "") =>
    execaSync("nsenter", [`--net=${path}`, "--", file, ...args], { input, env: ownLock }).stdout;
  return { name, path, run, remove: () => removeNetns(name) };
}

/** Removes what this process made and a failed test left behind. */
export function removeAllNetns(): void {
  const own = `${prefix}${process.pid}-`;
  for (const name of readdirSync("/run/netns")) if (name.startsWith(own)) removeNetns(name);
}

/**
 * Makes a netns that another user namespace owns, as a pod with `hostUsers: false` has. Without a map, the owner cannot
 * be told by the owner of its files.
 */
export function makeForeignNetns(purpose: string, map: "mapped" | "unmapped"): LabNetns {
  count += 1;
  const name = `${prefix}${process.pid}-${count}-${purpose}`;
  const path = `/run/netns/${name}`;
  const mapping =
    map === "mapped"
      ? "for f in uid_map gid_map; do echo 0 100000 65536 >/proc/$pid/$f; done"
      : ":";
  // The namespaces are there once the process in them is another program.
  const script = `touch "$1"
unshare --user --net sleep 60 & pid=$!
until [ "$(cat /proc/$pid/comm)" = sleep ]; do sleep 0.02; done
${mapping}
mount --bind "/proc/$pid/ns/net" "$1"
kill $pid
nsenter --net="$1" ip link set lo up`;
  execaSync("sh", ["-ec", script, "sh", path]);
  const run = (file: string, args: readonly string[], input = "") =>
    execaSync("nsenter", [`--net=${path}`, "--", file, ...args], { input, env: ownLock }).stdout;
  return { name, path, run, remove: () => removeNetns(name) };
}

function removeNetns(name: string): void {
  execaSync("ip", ["netns", "del", name], { reject: false });
}

/** True when this process may make network namespaces. Tests that need them fail in CI when it may not. */
export function canMakeNetns(): boolean {
  return process.getuid?.() === 0;
}
