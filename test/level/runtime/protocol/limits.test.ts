// Where the node is short of something, or a resolver silent: the call ends within its time, says what is short, and leaves
// nothing that DEL does not find.
import { createSocket } from "node:dgram";
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { savedNat } from "../../../lab/pod-nat.ts";
import { kubeconfig } from "./api-listener.ts";
import { failure, forms, linkerd, type Program, type Scene, test } from "./scene.ts";

/** Where groups of processes are limited in number: the hierarchy of its own, or the one for all. */
const hierarchies = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].filter((directory) =>
  existsSync(join(directory, "cgroup.procs")),
);

type Group = { readonly program: Program; readonly remove: () => Promise<void> };

/** A group that may have so many processes and threads, and what runs the executable in it. */
function limitedTo(count: number, { dir }: Scene): Group {
  const [hierarchy = ""] = hierarchies;
  const group = join(hierarchy, dir.split("/").at(-1) ?? "");
  mkdirSync(group);
  writeFileSync(join(group, "pids.max"), String(count));
  const script = `echo $$ >${group}/cgroup.procs && exec "$@"`;
  return {
    program: ["sh", "-c", script, "sh", ...forms.executable],
    remove: async () => {
      // What was ended leaves a little later.
      while (readFileSync(join(group, "cgroup.procs"), "utf8") !== "") await sleep(20);
      rmdirSync(group);
    },
  };
}

const both = {
  linkerd: { ...linkerd, ipv6: true },
  prevResult: { cniVersion: "1.1.0", ips: [{ address: "10.9.0.2/24" }, { address: "fd00::2/64" }] },
};
const short =
  "processes, memory or descriptors are short: see pids.max and memory.max of the runtime's cgroup, and the node's limits; try again";

test.for([3, 4, 5, 6, 7, 8, 9, 10, 12, 16])(
  "ADD ends in time, and all or nothing is there, with a limit of %i processes",
  async (count, { scene, skip }) => {
    skip(hierarchies.length === 0, "processes cannot be limited on this machine");
    const conf = scene.conf({
      ...both,
      sluice: { "state-dir": scene.stateDir, "timeout-seconds": 5 },
    });
    const group = limitedTo(count, scene);
    try {
      const began = performance.now();
      const { exitCode, stdout } = await scene.call("ADD", conf, { program: group.program });
      expect(performance.now() - began).toBeLessThan(15_000);
      const rules = (["ipv4", "ipv6"] as const).map((family) =>
        savedNat(scene.pod, family).includes("PROXY_INIT"),
      );
      if (exitCode === 0) {
        expect([stdout, ...rules]).toEqual([JSON.stringify(both.prevResult), true, true]);
      } else {
        const { code, msg, details } = JSON.parse(stdout);
        expect([code, details]).toEqual([11, short]);
        expect(msg).toContain("a process could not be started: ");
        // What could not be taken back for want of a process is found by the DEL that comes.
        const isRecorded = scene.records().length > 0;
        if (!isRecorded) expect(rules).toEqual([false, false]);
      }
      // Where there is enough by now, a repetition mends it, and DEL leaves nothing.
      expect((await scene.call("ADD", conf)).exitCode).toBe(0);
      expect((await scene.call("DEL", conf)).exitCode).toBe(0);
      expect(savedNat(scene.pod) + savedNat(scene.pod, "ipv6")).not.toContain("PROXY_INIT");
    } finally {
      await group.remove();
    }
  },
);

test("ADD works with 16 processes and fails with 3", async ({ scene, skip }) => {
  skip(hierarchies.length === 0, "processes cannot be limited on this machine");
  for (const [count, status] of [
    [16, 0],
    [3, 1],
  ] as const) {
    const group = limitedTo(count, scene);
    try {
      const answer = await scene.call("ADD", scene.conf(both), { program: group.program });
      expect([count, answer.exitCode]).toEqual([count, status]);
    } finally {
      await group.remove();
    }
  }
});

test("ADD ends in time when nobody answers for the API server's name", async ({
  scene,
  onTestFinished,
}) => {
  const dns = createSocket("udp4");
  const address = `127.77.${process.pid % 250}.53`;
  await new Promise<void>((resolve) => dns.bind(53, address, resolve));
  onTestFinished(() => void dns.close());
  writeFileSync(join(scene.dir, "resolv.conf"), `nameserver ${address}\n`);
  writeFileSync(
    join(scene.dir, "kubeconfig"),
    kubeconfig(6443).replace("127.0.0.1", "kube.example"),
  );
  const script = `mount --bind ${scene.dir}/resolv.conf /etc/resolv.conf && exec "$@"`;
  const program: Program = ["unshare", "--mount", "sh", "-c", script, "sh", ...forms.executable];
  const conf = scene.conf({
    kubernetes: { kubeconfig: join(scene.dir, "kubeconfig") },
    sluice: { "state-dir": scene.stateDir, "timeout-seconds": 1 },
  });
  const env = { CNI_ARGS: "K8S_POD_NAMESPACE=emoji;K8S_POD_NAME=web" };
  const began = performance.now();
  const { exitCode, stdout } = await scene.call("ADD", conf, { program, env });
  // The resolver itself waits for 10 s.
  expect(performance.now() - began).toBeLessThan(8_000);
  const asked = "GET https://kube.example:6443/api/v1/namespaces/emoji/pods/web";
  expect([exitCode, stdout]).toEqual([
    1,
    failure(
      11,
      `the API server did not answer: ${asked}: no whole answer in 500 ms`,
      "a pod that may be meshed does not start without its redirect; see that the API server can be reached from the node",
    ),
  ]);
});
