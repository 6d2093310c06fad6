// The xtables lock: the host's has nothing to do with a pod's tables and is never waited for; the netns' own is, for a
// while. The node has a /run of its own here, in which its lock can be held, hidden and broken.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { execaSync } from "execa";
import { expect } from "vitest";
import { backends, families } from "../../../src/netfilter/table.ts";
import type { LabNetns } from "../../lab/netns.ts";
import { complete } from "../../lab/states.ts";
import { stateConf } from "../netns/level.ts";
import { errorJson, test as level, logLines, type Node, ownMs } from "./node.ts";
import { readAll } from "./run/tables.ts";

// Empty but for the netns.
const privateRun = `mkdir -p "$tools/netns"
mount --rbind /run/netns "$tools/netns"
mount -t tmpfs none /run
mkdir /run/netns
mount --rbind "$tools/netns" /run/netns
hold() {
  ( exec 9>/run/xtables.lock; flock 9; exec sleep "$1" ) <&- >&- 2>&- &
  echo $! >>"$tools/holders"
  while flock -n /run/xtables.lock true; do sleep 0.01; done
}`;

/** Puts shell lines into a /run of their own; what they leave running ends with the test. */
const test = level.extend("inPrivateRun", ({ node }, { onCleanup }) => {
  onCleanup(() => endHolders(node));
  return (setup: string) => `tools=${node.tools.dir}\n${privateRun}\n${setup}`;
});

/** What may become of the host's lock; in each a legacy program that goes by it fails or waits. */
const hostLocks: readonly { name: string; setup: string }[] = [
  { name: "is held for 3 s", setup: "hold 3" },
  { name: "is held for ever", setup: "hold 60" },
  { name: "cannot be opened", setup: "mkdir /run/xtables.lock" },
  { name: "is on a read-only path", setup: "mount -o remount,ro /run" },
];

const rows = hostLocks.flatMap((lock) => backends.map((backend) => ({ ...lock, backend })));

test.concurrent.for(rows)(
  "ADD over $backend does not wait when the host's lock $name",
  async ({ setup, backend }, { node, inPrivateRun }) => {
    const conf = stateConf(backend, ...families);

    const answer = await node.call("ADD", conf, { setup: inPrivateRun(setup) });

    expect(answer).toMatchObject({ exitCode: 0, stdout: JSON.stringify(conf.prevResult) });
    expect(logLines(answer)).toMatchObject([{ execs: 1, changed: families }]);
    expect(ownMs(answer)).toBeLessThan(2_000);
  },
);

// Else the test above would prove nothing.
test.concurrent.for(hostLocks)(
  "a legacy program that goes by the host's lock is kept up when that $name",
  async ({ setup }, { node, inPrivateRun }) => {
    const program = "timeout 1 env -u XTABLES_LOCKFILE iptables-legacy-restore --noflush";
    const restore = `printf '*nat\\nCOMMIT\\n' | ${program} || echo kept up`;
    const script = `set -e\n${inPrivateRun(setup)}\n${restore}`;
    const said = await node.run(script);

    expect(said).toBe("kept up");
  },
);

test.concurrent("ADD waits when the netns' own lock is held for 3 s", async ({
  node,
  onTestFinished,
}) => {
  const conf = stateConf("legacy", ...families);
  const holder = await holdOwnLock(node.pod, 3);
  onTestFinished(() => holder.end());

  const answer = await node.call("ADD", conf);

  expect(answer).toMatchObject({ exitCode: 0, stdout: JSON.stringify(conf.prevResult) });
  expect(answer.durationMs).toBeGreaterThan(2_000);
  expect(logLines(answer)).toMatchObject([{ execs: 1, changed: families }]);
  expect((await readAll(node.pod)).get("legacy ipv6")?.own).toStrictEqual(complete);
});

test.concurrent("ADD gives up for now, within its time, when the netns' own lock is held for ever", async ({
  node,
  onTestFinished,
}) => {
  const holder = await holdOwnLock(node.pod, 60);
  onTestFinished(() => holder.end());
  const conf = { ...stateConf("legacy", "ipv4"), sluice: { "timeout-seconds": 4 } };

  const answer = await node.call("ADD", conf);

  const tool = "/usr/sbin/iptables-legacy-restore (legacy, ipv4, table nat)";
  const said = "Can't lock /proc/self/ns/net: Resource temporarily unavailable";
  const error = errorJson(
    11,
    `${tool} failed in N tries: ${said}`,
    "another program is changing the rules; try again",
  );
  expect(answer.stdout.replaceAll(/\d+(?= tries)/g, "N")).toBe(error);
  expect(answer.durationMs).toBeLessThan(6_000);
  expect((await readAll(node.pod)).get("legacy ipv4")?.own).toStrictEqual([]);
});

test.concurrent("ADD over nft does not wait when the netns' own lock is held", async ({
  node,
  onTestFinished,
}) => {
  const holder = await holdOwnLock(node.pod, 60);
  onTestFinished(() => holder.end());

  const answer = await node.call("ADD", stateConf("nft", ...families));

  expect(answer.exitCode).toBe(0);
  expect(ownMs(answer)).toBeLessThan(2_000);
});

function endHolders({ tools }: Node): void {
  const file = join(tools.dir, "holders");
  if (!existsSync(file)) return;
  for (const pid of readFileSync(file, "utf8").trim().split("\n")) {
    execaSync("kill", ["-KILL", pid], { reject: false });
  }
}

/** Holds the lock that the plugin names to legacy's programs, until it is told or the time is over. */
async function holdOwnLock(netns: LabNetns, seconds: number): Promise<{ end: () => void }> {
  const script = `exec 9</proc/self/ns/net; flock 9; echo held; exec sleep ${seconds} >&-`;
  const holder = spawn("nsenter", [`--net=${netns.path}`, "--", "sh", "-c", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(holder.stdout, "data");
  return { end: () => holder.kill("SIGKILL") };
}
