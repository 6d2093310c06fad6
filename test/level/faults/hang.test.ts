// Tools that do not end: ADD keeps its deadline, ends what it started, and lets go of the runtime's pipes, whatever the tool
// left behind.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect } from "vitest";
import { families } from "../../../src/netfilter/table.ts";
import { realTools, type Tool, type Tools } from "../../lab/fake-tools.ts";
import { confOf, stateConf } from "../netns/level.ts";
import { errorJson, type Node, test } from "./node.ts";
import { readAll } from "./run/tables.ts";

const deadlineSeconds = 3;
/** What starting the plugin, and taking back, may take on top on a busy machine. */
const graceMs = 3_500;

const work = "could not work in the netns of container c1";
const late = "did not end within the deadline; run it by hand to see what it waits for";
const halfway = "nothing of ours is left half-way; a family's rules are loaded all or not at all";

const hangs: Tool = { script: "exec sleep 60" };
/** With a child that has all that it has: stdin, stdout, stderr, and what else was open. */
const hangsWithChild: Tool = { script: "sleep 61 &\nsleep 62\nwait" };
/** With one that has left the process group, so that nobody finds it. */
const hangsWithStranger: Tool = { script: "setsid sleep 4 &\nsleep 62\nwait" };
/** Ends well, but something that it started keeps its pipes open. */
const leaves = (name: string): Tool => ({
  script: `setsid sleep 4 &\nexec "$real/${name}" "$@"`,
});

const at = (program: string, backend: string, family: string) =>
  `/usr/sbin/${program} (${backend}, ${family}, table nat)`;

/** Which tools hang, and which are named. */
const rows: readonly { name: string; tools: Tools; named: readonly string[] }[] = [
  {
    name: "restore",
    tools: { "iptables-nft-restore": hangs },
    named: [at("iptables-nft-restore", "nft", "ipv4")],
  },
  {
    name: "restore, with a child that holds its pipes",
    tools: { "iptables-nft-restore": hangsWithChild },
    named: [at("iptables-nft-restore", "nft", "ipv4")],
  },
  {
    name: "restore, with a child that left and holds its pipes",
    tools: { "iptables-nft-restore": hangsWithStranger },
    named: [at("iptables-nft-restore", "nft", "ipv4")],
  },
  {
    name: "restore of both families",
    tools: { "iptables-nft-restore": hangs, "ip6tables-nft-restore": hangs },
    named: [at("iptables-nft-restore", "nft", "ipv4"), at("ip6tables-nft-restore", "nft", "ipv6")],
  },
  {
    name: "restore of IPv6, when IPv4 is loaded",
    tools: { "ip6tables-nft-restore": hangs },
    named: [at("ip6tables-nft-restore", "nft", "ipv6")],
  },
  {
    name: "save",
    tools: { "iptables-nft-save": hangs },
    named: [at("iptables-nft-save", "nft", "ipv4")],
  },
  {
    name: "save of both families",
    tools: { "iptables-nft-save": hangsWithChild, "ip6tables-nft-save": hangsWithChild },
    named: [at("iptables-nft-save", "nft", "ipv4"), at("ip6tables-nft-save", "nft", "ipv6")],
  },
];

describe.concurrent("ADD", () => {
  test.for(rows)(
    "keeps its deadline, names it, and takes all back when what hangs is $name",
    async (row, { node }) => {
      node.tools.install({ ...realTools, ...row.tools });
      const conf = timed(stateConf("nft", ...families));

      const answer = await node.call("ADD", conf);

      const message = `${work}: ${row.named.join(" and ")} ${late}`;
      expect(answer.stdout).toBe(errorJson(11, message, halfway));
      // Until both of the plugin's pipes were closed by all that held them.
      expect(answer.durationMs).toBeLessThan(deadlineSeconds * 1_000 + graceMs);
      const tables = await readAll(node.pod);
      expect([...tables.values()].flatMap(({ own }) => own)).toStrictEqual([]);
      await sleep(50);
      expect(sleepers(node).filter((argv) => argv !== "sleep 4")).toStrictEqual([]);
      expect(node.stateFile("attachments/lab,c1,eth0.json")).toBeUndefined();
    },
  );

  test("succeeds when a tool has ended and something that it started holds its pipes", async ({
    node,
  }) => {
    node.tools.install({ ...realTools, "iptables-nft-restore": leaves("iptables-nft-restore") });
    const conf = timed(stateConf("nft", ...families));

    const answer = await node.call("ADD", conf);

    expect(answer).toMatchObject({ exitCode: 0, stdout: JSON.stringify(conf.prevResult) });
    expect(answer.durationMs).toBeLessThan(deadlineSeconds * 1_000 + graceMs);
  });

  test("says so when --version of a plain name hangs, and takes it for nothing that it may not be", async ({
    node,
  }) => {
    const stuck = `[ "$1" = --version ] && exec sleep 60\nexec "$real/iptables-legacy-restore" "$@"`;
    node.tools.install({
      "iptables-restore": { script: stuck },
      "iptables-save": { link: "iptables-legacy-save" },
    });
    const conf = confOf({ linkerd: { ...stateConf("nft").linkerd, "iptables-mode": "plain" } });

    const answer = await node.call("ADD", conf);

    const said = "iptables gave no answer to --version in 2 s, so its backend is not known";
    expect(JSON.parse(answer.stdout)).toMatchObject({ code: 11, msg: said });
  });

  test("leaves a deadline to its tools when it is killed itself", async ({ node }) => {
    node.tools.install({ ...realTools, "iptables-nft-restore": hangsWithChild });
    const call = node.call("ADD", timed(stateConf("nft", "ipv4")));
    while (sleepers(node).length === 0) await sleep(10);
    const [plugin] = processes(node).filter(({ argv }) => argv.endsWith("/dist/sluice"));
    if (plugin !== undefined) process.kill(plugin.pid, "SIGKILL");

    await call;
    expect(sleepers(node)).not.toStrictEqual([]);
    await sleep(deadlineSeconds * 1_000 + 500);
    expect(sleepers(node)).toStrictEqual([]);
  });
});

// A runtime reads until they are closed: who holds them keeps the pod from starting.
test("no tool is given the plugin's stdin, stdout and stderr", async ({ node }) => {
  const { dir } = node.tools;
  const restore = `readlink /proc/$$/fd/* >>"$dir/held"\nexec "$real/iptables-nft-restore" "$@"`;
  node.tools.install({ ...realTools, "iptables-nft-restore": { script: restore } });

  const answer = await node.call("ADD", stateConf("nft", "ipv4"), {
    setup: `readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2 >${dir}/given`,
  });

  expect(answer.exitCode).toBe(0);
  const [given = [], held = []] = ["given", "held"].map((name) => {
    return readFileSync(join(dir, name), "utf8").trim().split("\n");
  });
  expect(given).toHaveLength(3);
  expect(held.length).toBeGreaterThan(2);
  expect(held.filter((file) => given.includes(file))).toStrictEqual([]);
});

function timed<T extends object>(conf: T) {
  return { ...conf, sluice: { "timeout-seconds": deadlineSeconds } };
}

type Process = { readonly pid: number; readonly argv: string };

/** The processes that see the node's programs: in its mount namespaces, by the directory that is mounted there. */
function processes({ tools }: Node): Process[] {
  const numbers = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return numbers.flatMap((name) => {
    if (!textOf(`/proc/${name}/mountinfo`).includes(`${tools.dir}/sbin`)) return [];
    const argv = textOf(`/proc/${name}/cmdline`).split("\0").join(" ").trim();
    return [{ pid: Number(name), argv }];
  });
}

function sleepers(node: Node): string[] {
  return processes(node).flatMap(({ argv }) => (argv.startsWith("sleep ") ? [argv] : []));
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    // It has ended meanwhile.
    return "";
  }
}
