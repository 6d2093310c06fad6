// Others at the same table: what is transient is tried again, a bounded number of times; ADD says that it is done only when
// it has seen all of its rules, and takes back what it cannot keep.
import { spawn } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { type Backend, backends, families } from "../../../src/netfilter/table.ts";
import { realTools, says, saysFirst, type Tool, type Tools } from "../../lab/fake-tools.ts";
import { complete, loadState, ownLines, type StateName, states } from "../../lab/states.ts";
import { stateConf } from "../netns/level.ts";
import { errorJson, logLines, type Node, type TimedAnswer, test } from "./node.ts";
import { readAll } from "./run/tables.ts";

const toolOf = (backend: Backend) => `/usr/sbin/iptables-${backend}-restore`;
const starts: readonly StateName[] = ["nothing in it", "the outbound jump missing"];
const places = backends.flatMap((backend) => starts.map((start) => ({ backend, start })));

/** What fails for a moment, as many times as it takes to be noticed. */
const moments: readonly { name: string; stderr: string; exitCode: number }[] = [
  {
    name: "the lock",
    stderr:
      "Another app is currently holding the xtables lock. Perhaps you want to use the -w option?\n",
    exitCode: 4,
  },
  { name: "EAGAIN", stderr: "iptables-restore: Resource temporarily unavailable.\n", exitCode: 4 },
  {
    name: "EBUSY",
    stderr:
      "iptables-nft-restore v1.8.9 (nf_tables): \nline 9: CHAIN_DEL failed (Device or resource busy): chain X\n",
    exitCode: 4,
  },
  {
    name: "an interrupted call",
    stderr: "iptables-restore: Interrupted system call\n",
    exitCode: 1,
  },
];

describe.concurrent("a restore that is refused", () => {
  test.for(moments)(
    "is tried again, and then done, when the reason is $name",
    async (words, { node }) => {
      const restore = saysFirst(3, words, "iptables-nft-restore");
      node.tools.install({ ...realTools, "iptables-nft-restore": restore });

      const answer = await node.call("ADD", stateConf("nft", "ipv4"));

      expect(answer.exitCode).toBe(0);
      expect(logLines(answer)).toMatchObject([{ changed: ["ipv4"], execs: 4 }]);
      expect((await readAll(node.pod)).get("nft ipv4")?.own).toStrictEqual(complete);
    },
  );

  test.for(moments)(
    "is given up for now, within the deadline, when $name does not end",
    async (words, { node }) => {
      node.tools.install({ ...realTools, "iptables-nft-restore": says(words) });
      const conf = { ...stateConf("nft", "ipv4"), sluice: { "timeout-seconds": 1 } };

      const answer = await node.call("ADD", conf);

      expect(JSON.parse(answer.stdout)).toMatchObject({
        code: 11,
        details: "another program is changing the rules; try again",
      });
      expect(node.tools.calls().length).toBeGreaterThan(1);
      expect(answer.durationMs).toBeLessThan(4_000);
    },
  );
});

describe.concurrent("rules that do not stay", () => {
  test.for(places)(
    "are written again when somebody flushes them between write and look: $backend, $start",
    async ({ backend, start }, { node }) => {
      loadState({ netns: node.pod, backend, family: "ipv4" }, start);
      node.tools.install({ ...realTools, ...undoing(backend, 2, `iptables-${backend} -t nat -F`) });

      const answer = await node.call("ADD", stateConf(backend, "ipv4"));

      expect(answer.exitCode).toBe(0);
      expect((await readAll(node.pod)).get(`${backend} ipv4`)?.own).toStrictEqual(complete);
    },
  );

  test.for(places)(
    "are written again when somebody restores an old save between write and look: $backend, $start",
    async ({ backend, start }, { node }) => {
      loadState({ netns: node.pod, backend, family: "ipv4" }, start);
      node.tools.install({ ...realTools, ...undoing(backend, 2, restoreOld(backend)) });

      const answer = await node.call("ADD", stateConf(backend, "ipv4"));

      expect(answer.exitCode).toBe(0);
      expect((await readAll(node.pod)).get(`${backend} ipv4`)?.own).toStrictEqual(complete);
    },
  );

  test.for(backends)(
    "are given up after eight writes when somebody flushes them each time: %s",
    async (backend, { node }) => {
      const flush = `iptables-${backend} -t nat -F; iptables-${backend} -t nat -X`;
      node.tools.install({ ...realTools, ...undoing(backend, 99, flush) });

      const answer = await node.call("ADD", stateConf(backend, "ipv4"));

      expect(answer.stdout).toBe(unstable(backend));
      expect(node.tools.calls()).toHaveLength(9);
      expect((await readAll(node.pod)).get(`${backend} ipv4`)?.own).toStrictEqual([]);
    },
  );

  // istio#57332: the repair said that it was done, and nothing was there (C150); kubernetes#82361: endless writes (C11).
  test.for(places)(
    "are given up after eight writes when restore says yes and does nothing: $backend, $start",
    async ({ backend, start }, { node }) => {
      loadState({ netns: node.pod, backend, family: "ipv4" }, start);
      const before = await readAll(node.pod);
      node.tools.install({ ...realTools, [`iptables-${backend}-restore`]: says({}) });

      const answer = await node.call("ADD", stateConf(backend, "ipv4"));

      expect(answer.stdout).toBe(unstable(backend));
      expect(node.tools.calls().length).toBeLessThanOrEqual(9);
      expect(await readAll(node.pod)).toStrictEqual(before);
    },
  );

  // kubernetes#112477: an old save leaves out a match that it does not know (C34).
  test("are given up, and not written back, when save leaves out a part of a rule", async ({
    node,
  }) => {
    const save = `"$real/iptables-nft-save" "$@" | sed 's/ -m owner --uid-owner 2102//'`;
    node.tools.install({ ...realTools, "iptables-nft-save": { script: save } });

    const answer = await node.call("ADD", stateConf("nft", "ipv4"));

    expect(answer.stdout).toBe(unstable("nft"));
    expect((await readAll(node.pod)).get("nft ipv4")?.own).toStrictEqual([]);
  });
});

// `systemctl restart iptables`, over and over: flush, delete chains, restore.
test.for(backends)(
  "ADD over %s is proven or fails for now while another program restores an old save all the time",
  {
    timeout: 90_000,
  },
  async (backend, { node }) => {
    node.tools.install({ ...realTools, ...recordingSaves(backend) });
    const conf = stateConf(backend, ...families);
    const end = disturb(node, backend);
    const answers: TimedAnswer[] = [];
    const proofs: string[][] = [];
    const began = performance.now();
    try {
      while (performance.now() - began < 5_000) {
        answers.push(await node.call("ADD", conf));
        proofs.push(...lastSaves(node, answers.at(-1)));
      }
    } finally {
      end();
    }

    const codes = answers.map(({ exitCode, stdout }) =>
      exitCode === 0 ? 0 : JSON.parse(stdout).code,
    );
    expect(codes.filter((code) => code !== 0 && code !== 11)).toStrictEqual([]);
    expect(proofs.filter((own) => own.join("\n") !== complete.join("\n"))).toStrictEqual([]);

    const answer = await node.call("ADD", conf);
    expect(answer).toMatchObject({ exitCode: 0, stdout: JSON.stringify(conf.prevResult) });
    expect((await node.call("CHECK", conf)).stdout).toBe("");
  },
);

function unstable(backend: Backend): string {
  const message = `${toolOf(backend)} (${backend}, ipv4, table nat): the rules did not stay as written in 8 tries`;
  const details =
    "another program keeps changing the rules in this netns, or save and restore are not of one version";
  return errorJson(11, message, details);
}

/** A restore after which, so many times, somebody undoes what it did before anybody looks. */
function undoing(backend: Backend, times: number, command: string): Tools {
  const name = `iptables-${backend}-restore`;
  const script = `"$real/${name}" "$@" || exit
[ "$(grep -c "^\${0##*/} " "$dir/calls")" -gt ${times} ] && exit
PATH=$real:$PATH
${command}
exit 0`;
  return { [name]: { script } };
}

function restoreOld(backend: Backend): string {
  return `iptables-${backend}-restore <<'END'\n${states["linkerd-init's rules, interrupted"]}END`;
}

function recordingSaves(backend: Backend): Tools {
  const names = families.map((family) => saveOf(backend, family));
  const script = `"$real/\${0##*/}" "$@" | tee "$dir/\${0##*/}.out"`;
  return Object.fromEntries(names.map((name): [string, Tool] => [name, { script }]));
}

function saveOf(backend: Backend, family: string): string {
  return `${family === "ipv4" ? "iptables" : "ip6tables"}-${backend}-save`;
}

/** What an ADD that said yes saw last of each family: its proof. */
function lastSaves({ tools }: Node, answer: TimedAnswer | undefined): string[][] {
  const backend = answer?.stderr.includes('"backend":"legacy"') === true ? "legacy" : "nft";
  const files = families.map((family) => join(tools.dir, `${saveOf(backend, family)}.out`));
  const saved = answer?.exitCode === 0 ? files.map((file) => readFileSync(file, "utf8")) : [];
  for (const file of files) rmSync(file, { force: true });
  return saved.map(ownLines);
}

/** Flushes and restores both families until it is told to end; goes by another lock than we do. */
function disturb({ pod, tools }: Node, backend: Backend): () => void {
  const loops = ["iptables", "ip6tables"].map((name) => {
    const tool = `${name}-${backend}`;
    const old = states["linkerd-init's rules, interrupted"];
    return `while :; do ${tool} -t nat -F; ${tool} -t nat -X; ${tool}-restore <<'END'\n${old}END\ndone 2>/dev/null &`;
  });
  const child = spawn(
    "nsenter",
    [`--net=${pod.path}`, "--", "sh", "-c", `${loops.join("\n")}\nwait`],
    {
      env: { ...process.env, XTABLES_LOCKFILE: join(tools.dir, "their-lock") },
      detached: true,
      stdio: "ignore",
    },
  );
  return () => {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  };
}
