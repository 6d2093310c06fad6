// What did not begin, and why: the words of those who start processes.
import { expect, test } from "vitest";
import { readStartFailure } from "../../../src/netns/start-failure.ts";

const rows: [who: string, said: string, isPassing: boolean, advice: RegExp][] = [
  ["Node", "spawnSync /usr/bin/timeout EAGAIN", true, /pids\.max/],
  ["Node", "spawnSync /usr/bin/nsenter ENOMEM", true, /memory\.max/],
  ["Node", "spawnSync /usr/bin/nsenter EMFILE", true, /descriptors/],
  ["Node", "spawn /usr/bin/timeout EAGAIN", true, /pids\.max/],
  ["Node", "spawn ENOMEM", true, /memory\.max/],
  ["dash", "sluice: 8: Cannot fork", true, /pids\.max/],
  ["dash", "sluice: 8: Pipe call failed", true, /descriptors/],
  ["bash", "sluice: fork: retry: Resource temporarily unavailable", true, /pids\.max/],
  ["bash", "/bin/sh: fork: Cannot allocate memory", true, /memory\.max/],
  ["busybox", "sh: can't fork: Resource temporarily unavailable", true, /pids\.max/],
  ["busybox", "timeout: vfork: Resource temporarily unavailable", true, /pids\.max/],
  [
    "timeout",
    "/usr/bin/timeout: fork system call failed: Resource temporarily unavailable",
    true,
    /pids\.max/,
  ],
  [
    "nsenter",
    "nsenter: reassociate to namespace 'ns/net' failed: Operation not permitted",
    false,
    /^nsenter needs root with CAP_SYS_ADMIN/,
  ],
  [
    "nsenter",
    "/usr/bin/nsenter: cannot open /proc/7/fd/17: Permission denied",
    false,
    /CAP_SYS_PTRACE/,
  ],
  [
    "unshare",
    "unshare: unshare failed: Operation not permitted",
    false,
    /^unshare needs root with/,
  ],
  ["unshare", "unshare: unshare failed: No space left on device", true, /max_net_namespaces/],
];

test.each(rows)("readStartFailure() knows %s's %j", (...row) => {
  const [, said, isPassing, advice] = row;
  const texts = ["", `a line before\n${said}\na line after\n`];
  expect(readStartFailure(texts)).toEqual({
    said,
    isPassing,
    advice: expect.stringMatching(advice),
  });
});

test.each([
  "",
  "spawnSync /usr/bin/timeout ENOENT",
  "nsenter: reassociate to namespace 'ns/net' failed: Invalid argument",
  "cat: /proc/sys/x: Permission denied",
  "mentions a fork in passing",
])("readStartFailure() knows nothing of %j", (said) => {
  expect(readStartFailure([said])).toBeUndefined();
});
