// A kernel setting that cannot be read or set: which of the reasons are of the moment.
import { expect, test } from "vitest";
import type { ExecResult } from "../../../src/netns/exec.ts";
import { readSysctl, writeSysctl } from "../../../src/netns/sysctl.ts";
import { cniError, rejectionOf } from "../../fake/thrown.ts";
import { makeNetns } from "../../fake/world.ts";

const netns = makeNetns("/run/netns/a", 1);
const name = "net.netfilter.nf_conntrack_tcp_timeout_close_wait";
const file = `/proc/sys/${name.replaceAll(".", "/")}`;
const short =
  "processes, memory or descriptors are short: see pids.max and memory.max of the runtime's cgroup, and the node's limits; try again";

const rows: [when: string, result: Partial<ExecResult>, code: number, problem: string][] = [
  [
    "there is no answer in time",
    { exitCode: undefined, timedOut: true },
    11,
    "no answer within the deadline; try again",
  ],
  ["it is killed", { exitCode: undefined }, 11, "the program was killed; try again"],
  [
    "there is no process for it",
    { exitCode: undefined, startError: "spawnSync /bin/nsenter EAGAIN" },
    11,
    `spawnSync /bin/nsenter EAGAIN; ${short}`,
  ],
  [
    "it is not there",
    { exitCode: 1, outputs: ["", `cat: ${file}: No such file or directory\n`] },
    102,
    `cat: ${file}: No such file or directory; is nf_conntrack loaded?`,
  ],
  [
    "the netns may not be entered",
    {
      exitCode: 1,
      outputs: ["", "nsenter: reassociate to namespace 'ns/net' failed: Operation not permitted\n"],
    },
    102,
    "nsenter: reassociate to namespace 'ns/net' failed: Operation not permitted; nsenter needs root with CAP_SYS_ADMIN (and CAP_SYS_PTRACE) to enter a netns",
  ],
  ["it is silent", { exitCode: 2 }, 102, "exit status 2; is nf_conntrack loaded?"],
];

test.each(rows)("a setting cannot be used when %s", async (...row) => {
  const [, result, code, problem] = row;
  const ended = { exitCode: 0, timedOut: false, startError: "", outputs: ["", ""] };
  const host = {
    exec: () => Promise.resolve({ ...ended, ...result }),
    toolbox: { find: (program: string) => `/bin/${program}`, shell: "/bin/sh", env: {} },
    nssMask: () => [],
  };
  const looking = { host, timeoutMs: 1_000 };
  const error = cniError(
    code,
    "a kernel setting of netns /run/netns/a cannot be used",
    `${file}: ${problem}`,
  );
  expect(await rejectionOf(readSysctl(netns, name, looking))).toEqual(error);
  expect(await rejectionOf(writeSysctl(netns, { name, value: "60" }, looking))).toEqual(error);
});
