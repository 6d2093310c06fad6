// What ADD and CHECK say when a program fails: with which tool, of which backend, on which table and chain, what it said, and
// what to do. The texts are those of the public reports, by tools of many ages.
import { describe, expect } from "vitest";
import type { Backend, Family } from "../../../src/netfilter/table.ts";
import {
  namesOf,
  realOnes,
  realTools,
  refusing,
  says,
  type Tool,
  type Tools,
  type Words,
} from "../../lab/fake-tools.ts";
import { linkerd, loadState } from "../../lab/states.ts";
import { addressOf, confOf, kernelState } from "../level.ts";
import { errorJson, freeConf, logLines, test } from "./node.ts";

const advice = {
  lock: "another program is changing the rules; try again",
  lockFile: "the lock file cannot be opened: check that /run is writable",
  noNft: "the kernel has no nf_tables: load nf_tables, or set iptables-mode to legacy",
  noNat:
    "the kernel has no nat table for this backend: modprobe iptable_nat (ip6table_nat), or use nft",
  root: "root with CAP_NET_ADMIN is needed; with SELinux, look for a denial",
  none: "see the tool's message; nothing of ours is left half-way",
  install: "install iptables 1.8 or later, or set linkerd.iptables-mode to what is there",
  cannotRun: "the program cannot be run: install iptables",
  library: "the node's iptables has no extension REDIRECT: install all of iptables",
  modules:
    "the kernel lacks a match or target: modprobe xt_owner xt_REDIRECT xt_multiport xt_comment",
} as const;

const modprobe = (name: string) =>
  `the kernel lacks this match or target: modprobe xt_${name}, or reboot after a kernel update`;

/** A restore that fails in every run, what becomes of it, and how often it is run until that is clear. */
type Row = {
  readonly name: string;
  readonly backend: Backend;
  readonly words: Words;
  /** The error: what the tool is quoted with, the chain that it named, how often it was tried. */
  readonly said: string;
  readonly advice: string;
  readonly chain?: string;
  readonly tries?: number;
  readonly code?: number;
};

const missingExtension = (name: string): Row => ({
  name: `the kernel has no xt_${name} (C40, C31)`,
  backend: "nft",
  words: {
    stderr: `Warning: Extension ${name} revision 0 not supported, missing kernel module?
iptables-nft-restore v1.8.7 (nf_tables): \nline 6: RULE_APPEND failed (No such file or directory): rule in chain PROXY_INIT_OUTPUT\n`,
    exitCode: 4,
  },
  said: `Warning: Extension ${name} revision 0 not supported, missing kernel module?`,
  advice: modprobe(name),
  chain: "PROXY_INIT_OUTPUT",
});

const rows: readonly Row[] = [
  {
    name: "nft is there and the kernel has no nf_tables (C23)",
    backend: "nft",
    words: {
      stderr:
        "iptables-restore/1.8.7 Failed to initialize nft: Protocol not supported\nmore of it\n",
      exitCode: 1,
    },
    said: "iptables-restore/1.8.7 Failed to initialize nft: Protocol not supported",
    advice: advice.noNft,
  },
  {
    name: "the kernel's nf_tables is too old (C23)",
    backend: "nft",
    words: {
      stderr:
        "iptables-restore v1.8.5 (nf_tables): Could not fetch rule set generation id: Invalid argument\n",
      exitCode: 4,
    },
    said: "iptables-restore v1.8.5 (nf_tables): Could not fetch rule set generation id: Invalid argument",
    advice: advice.noNft,
  },
  {
    name: "modules cannot be loaded (C24)",
    backend: "legacy",
    words: {
      stderr: `modprobe: can't change directory to '/lib/modules': No such file or directory
iptables-restore v1.8.4 (legacy): iptables-restore: unable to initialize table 'nat'\n
Error occurred at line: 1
Try \`iptables-restore -h' or 'iptables-restore --help' for more information.\n`,
      exitCode: 2,
    },
    said: "iptables-restore v1.8.4 (legacy): iptables-restore: unable to initialize table 'nat'",
    advice: advice.noNat,
  },
  {
    name: "the kernel has no ip_tables (C24)",
    backend: "legacy",
    words: {
      stderr: `iptables-restore v1.4.21: can't initialize iptables table \`nat': iptables who? (do you need to insmod?)
Perhaps iptables or your kernel needs to be upgraded.\n`,
      exitCode: 3,
    },
    said: "iptables-restore v1.4.21: can't initialize iptables table `nat': iptables who? (do you need to insmod?)",
    advice: advice.noNat,
  },
  ...["owner", "REDIRECT", "multiport", "comment"].map(missingExtension),
  {
    name: "the kernel refuses a rule, and the tool knows no reason (C04, C40)",
    backend: "nft",
    words: {
      stderr:
        "iptables-nft-restore v1.8.9 (nf_tables): \nline 8: RULE_APPEND failed (No such file or directory): rule in chain PREROUTING\n",
      exitCode: 4,
    },
    said: "line 8: RULE_APPEND failed (No such file or directory): rule in chain PREROUTING",
    advice: advice.modules,
    chain: "PREROUTING",
    tries: 3,
  },
  {
    name: "a library of iptables is missing",
    backend: "legacy",
    words: {
      stderr:
        "iptables-restore v1.8.9 (legacy): Couldn't load target `REDIRECT':No such file or directory\n\nError occurred at line: 4\n",
      exitCode: 2,
    },
    said: "iptables-restore v1.8.9 (legacy): Couldn't load target `REDIRECT':No such file or directory",
    advice: advice.library,
  },
  {
    name: "the lock is held, and the tool does not wait (C44)",
    backend: "legacy",
    words: {
      stderr:
        "Another app is currently holding the xtables lock. Perhaps you want to use the -w option?\n",
      exitCode: 4,
    },
    said: "Another app is currently holding the xtables lock. Perhaps you want to use the -w option?",
    advice: advice.lock,
    tries: 8,
    code: 11,
  },
  {
    name: "the kernel asks to try again",
    backend: "legacy",
    words: {
      stderr: "iptables-restore: line 9 failed: Resource temporarily unavailable.\n",
      exitCode: 1,
    },
    said: "iptables-restore: line 9 failed: Resource temporarily unavailable.",
    advice: advice.lock,
    tries: 8,
    code: 11,
  },
  {
    name: "the lock file cannot be opened (C48)",
    backend: "legacy",
    words: {
      stderr: "Fatal: can't open lock file /run/xtables.lock: Read-only file system\n",
      exitCode: 4,
    },
    said: "Fatal: can't open lock file /run/xtables.lock: Read-only file system",
    advice: advice.lockFile,
  },
  {
    name: "root is not enough",
    backend: "nft",
    words: {
      stderr:
        "iptables-nft-restore v1.8.9 (nf_tables): Operation not permitted (you must be root)\n",
      exitCode: 4,
    },
    said: "iptables-nft-restore v1.8.9 (nf_tables): Operation not permitted (you must be root)",
    advice: advice.root,
  },
  {
    name: "the kernel refuses the table and nobody says why",
    backend: "legacy",
    words: { stderr: "iptables-restore: line 12 failed\n", exitCode: 1 },
    said: "iptables-restore: line 12 failed",
    advice: advice.none,
    tries: 3,
  },
  {
    name: "the tool speaks on stdout (C90)",
    backend: "nft",
    words: { stdout: "Try `iptables-restore -h' for more information.\n", exitCode: 2 },
    said: "Try `iptables-restore -h' for more information.",
    advice: advice.none,
    tries: 3,
  },
  {
    name: "the tool says nothing",
    backend: "nft",
    words: { exitCode: 1 },
    said: "exit status 1",
    advice: advice.none,
    tries: 3,
  },
];

describe.concurrent("restore", () => {
  test.for(rows)(
    "ADD names the tool, its words and the way out when $name",
    async (row, { node }) => {
      const { backend, words, said, chain = "", code = 101, tries = 1 } = row;
      const name = `iptables-${backend}-restore`;
      node.tools.install({ ...realTools, [name]: says(words) });

      const answer = await node.call("ADD", modeConf(backend, "ipv4"));

      const where = `${backend}, ipv4, table nat${chain === "" ? "" : `, chain ${chain}`}`;
      const how = code === 11 ? `failed in ${tries} tries` : "failed";
      const message = `/usr/sbin/${name} (${where}) ${how}: ${said}`;
      expect(answer.stdout).toBe(errorJson(code, message, row.advice));
      expect(node.tools.calls()).toHaveLength(tries);
      expect(node.stateFile("attachments/lab,c1,eth0.json")).toBeUndefined();
    },
  );

  test("ADD succeeds, with nothing but its result on stdout, when tools speak on stdout", async ({
    node,
  }) => {
    const loud = { script: `echo "Warning: 'iptables' is a link"\nexec "$real/\${0##*/}" "$@"` };
    node.tools.install({ ...realTools, "iptables-nft-restore": loud });
    const conf = { ...modeConf("nft", "ipv4"), log_level: "debug" };

    const answer = await node.call("ADD", conf);

    expect(answer).toMatchObject({ exitCode: 0, stdout: JSON.stringify(conf.prevResult) });
  });

  const owner: Words = missingExtension("owner").words;
  const both = ["nft", "legacy"].flatMap((backend) => namesOf(`-${backend}`, ["iptables"]));
  const ownerRefused = (name: string): Tool => refusing("-m owner", owner, name);

  test("ADD takes the other backend when the one that was found lacks a match and nobody named it", async ({
    node,
  }) => {
    await node.call("STATUS", freeConf("ipv4"));
    node.tools.install({
      ...realTools,
      "iptables-nft-restore": ownerRefused("iptables-nft-restore"),
    });

    const answer = await node.call("ADD", freeConf("ipv4"));

    expect(answer.exitCode).toBe(0);
    expect(logLines(answer)).toMatchObject([
      { level: "info", backend: "nft", provisional: true, msg: "backend detected" },
      { level: "warn", backend: "legacy", msg: "the other backend is taken instead" },
      { backend: "legacy", changed: ["ipv4"] },
    ]);
    expect(node.stateFile("attachments/lab,c1,eth0.json")).toMatchObject({
      backend: "legacy",
      backendReason: "nft refused",
    });
  });

  test("ADD fails with both reasons when the other backend lacks it too", async ({ node }) => {
    await node.call("STATUS", freeConf("ipv4"));
    const restores = both.filter((name) => name.endsWith("-restore"));
    const refused = Object.fromEntries(restores.map((name) => [name, ownerRefused(name)]));
    node.tools.install({ ...realTools, ...refused });

    const answer = await node.call("ADD", freeConf("ipv4"));

    const failed = (backend: Backend) =>
      `/usr/sbin/iptables-${backend}-restore (${backend}, ipv4, table nat, chain PROXY_INIT_OUTPUT) failed: Warning: Extension owner revision 0 not supported, missing kernel module?`;
    const details = `${modprobe("owner")}; then ${failed("legacy")}: ${modprobe("owner")}`;
    expect(answer.stdout).toBe(errorJson(101, failed("nft"), details));
  });
});

/** A save that fails, for ADD, which has loaded its rules by then, and for CHECK. */
const saves: readonly {
  name: string;
  save: Tool;
  said: string;
  advice: string;
  code?: number;
  how?: string;
}[] = [
  {
    name: "its lock is held (C46)",
    save: says({
      stderr: "Another app is currently holding the xtables lock. Stopped waiting after 1s.\n",
      exitCode: 4,
    }),
    said: "Another app is currently holding the xtables lock. Stopped waiting after 1s.",
    advice: advice.lock,
    code: 11,
    how: "failed in 8 tries",
  },
  {
    name: "it prints what no iptables-save prints",
    save: says({ stdout: "Segmentation fault\n" }),
    said: 'iptables-save printed a line outside of any table: "Segmentation fault"',
    advice: advice.none,
  },
  {
    name: "it stops half-way",
    save: says({ stdout: "*nat\n:OUTPUT ACCEPT [0:0]\n" }),
    said: 'iptables-save printed no COMMIT for table: "nat"',
    advice: advice.none,
  },
  {
    name: "the kernel has no nf_tables for it",
    save: says({
      stderr:
        "iptables-nft-save v1.8.7 (nf_tables): Could not fetch rule set generation id: Invalid argument\n",
      exitCode: 1,
    }),
    said: "iptables-nft-save v1.8.7 (nf_tables): Could not fetch rule set generation id: Invalid argument",
    advice: advice.noNft,
  },
];

describe.concurrent("save", () => {
  test.for(saves)(
    "ADD fails and takes back what it cannot prove when $name",
    async (row, { node }) => {
      const { save, said, code = 101, how = "failed" } = row;
      node.tools.install({ ...realTools, "iptables-nft-save": save });

      const answer = await node.call("ADD", modeConf("nft", "ipv4"));

      const message = `/usr/sbin/iptables-nft-save (nft, ipv4, table nat) ${how}: ${said}`;
      expect(answer.stdout).toBe(errorJson(code, message, row.advice));
      expect(kernelState(node.pod)).not.toContain("PROXY_INIT");
    },
  );

  test.for(saves)("CHECK does not call it drift when $name", async ({ save, said }, { node }) => {
    loadState({ netns: node.pod, backend: "nft", family: "ipv4" }, "all in order");
    node.tools.install({ ...realTools, "iptables-nft-save": save });

    const answer = await node.call("CHECK", modeConf("nft", "ipv4"));

    const message = `/usr/sbin/iptables-nft-save (nft, ipv4) could not show the nat table: ${said}`;
    expect(answer.stdout).toBe(
      errorJson(11, message, "whether the redirect is in place is not known"),
    );
  });
});

const halfway = "nothing of ours is left half-way; a family's rules are loaded all or not at all";
const work = "could not work in the netns of container c1";

/** Nodes that lack something. */
const poor: readonly {
  name: string;
  tools?: Tools;
  hidden?: string;
  mode: string;
  families: readonly Family[];
  code: number;
  msg: string;
  details: string;
}[] = [
  {
    name: "no iptables programs at all (C25)",
    tools: {},
    mode: "nft",
    families: ["ipv4", "ipv6"],
    code: 101,
    msg: "no iptables programs of backend nft for ipv4 and ipv6 on the node",
    details: advice.install,
  },
  {
    name: "the plain names alone, and those are of the other backend (C21)",
    tools: {
      "iptables-restore": { link: "iptables-legacy-restore" },
      "iptables-save": { link: "iptables-legacy-save" },
    },
    mode: "nft",
    families: ["ipv4"],
    code: 101,
    msg: "no iptables programs of backend nft for ipv4 on the node",
    details: advice.install,
  },
  {
    name: "no plain names (C22)",
    mode: "plain",
    families: ["ipv4"],
    code: 101,
    msg: "no iptables programs under the plain names for ipv4 on the node",
    details: advice.install,
  },
  {
    name: "restore, but no save (C21)",
    tools: realOnes(["iptables-nft-restore"]),
    mode: "nft",
    families: ["ipv4"],
    code: 101,
    msg: "no iptables programs of backend nft for ipv4 on the node",
    details: advice.install,
  },
  {
    name: "a restore that cannot be run (C21: exit status 127)",
    tools: { ...realTools, "iptables-nft-restore": says({ exitCode: 127 }) },
    mode: "nft",
    families: ["ipv4"],
    code: 101,
    msg: "/usr/sbin/iptables-nft-restore (nft, ipv4, table nat) failed: exit status 127",
    details: advice.cannotRun,
  },
  {
    name: "plain names of two backends, one a family",
    tools: {
      "iptables-restore": { link: "iptables-nft-restore" },
      "iptables-save": { link: "iptables-nft-save" },
      "ip6tables-restore": { link: "ip6tables-legacy-restore" },
      "ip6tables-save": { link: "ip6tables-legacy-save" },
    },
    mode: "plain",
    families: ["ipv4", "ipv6"],
    code: 101,
    msg: "no iptables programs under the plain names for ipv6 on the node",
    details: advice.install,
  },
  {
    name: "no nsenter (C179)",
    hidden: "nsenter",
    mode: "nft",
    families: ["ipv4"],
    code: 102,
    msg: `${work}: nsenter is not on the node; install util-linux`,
    details: halfway,
  },
  {
    name: "no unshare for a trial",
    hidden: "unshare",
    mode: "auto",
    families: ["ipv4"],
    code: 102,
    msg: `${work}: unshare is not on the node; install util-linux`,
    details: halfway,
  },
];

test.for(poor)(
  "ADD says what is missing, and changes nothing, when the node has $name",
  async (row, { node }) => {
    node.tools.install(row.tools ?? realTools);
    const setup = row.hidden === undefined ? "" : hide(row.hidden);

    const answer = await node.call("ADD", modeConf(row.mode, ...row.families), { setup });

    expect(answer.stdout).toBe(errorJson(row.code, row.msg, row.details));
    expect(kernelState(node.pod)).toBe("");
  },
);

test("ADD does without timeout(1) when the node has none", async ({ node }) => {
  const conf = modeConf("nft", "ipv4", "ipv6");

  const answer = await node.call("ADD", conf, { setup: hide("timeout") });

  expect(answer).toMatchObject({ exitCode: 0, stdout: JSON.stringify(conf.prevResult) });
});

function modeConf(mode: string, ...of: readonly Family[]) {
  return confOf({
    linkerd: { ...linkerd, "iptables-mode": mode },
    addresses: of.map((family) => addressOf[family]),
  });
}

function hide(program: string): string {
  return `mount --bind /dev/null /usr/bin/${program}`;
}
