// What ADD says when restore fails: with which tool, of which backend, on which table and chain, what it said, and what to do.
// The texts are those of the public reports, by tools of many ages.
import { describe, expect } from "vitest";
import type { Backend } from "../../../src/netfilter/table.ts";
import { namesOf, realTools, refusing, says, type Tool, type Words } from "../../lab/fake-tools.ts";
import { advice, modeConf, modprobe } from "./advice.ts";
import { errorJson, freeConf, logLines, test } from "./node.ts";

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

/** nft's words for a step that the kernel refuses. */
const step = (what: string, why: string, row: Partial<Row>): Row => {
  const [, chain = ""] = /^chain (.*)/.exec(what.split(": ")[1] ?? "") ?? [];
  const said = `line 2: ${what.replace(":", ` failed (${why}):`)}`;
  return {
    name: `${what}: ${why}`,
    backend: "nft",
    words: { stderr: `iptables-nft-restore v1.8.9 (nf_tables): \n${said}\n`, exitCode: 4 },
    said,
    advice: advice.none,
    ...(chain === "" ? {} : { chain }),
    ...row,
  };
};
const passing = { code: 11, tries: 8 };

const rows: readonly Row[] = [
  step("CHAIN_ADD: chain OUTPUT", "No such file or directory", { advice: advice.noNftNat }),
  step("CHAIN_ADD: chain OUTPUT", "Operation not supported", { advice: advice.noNftNat }),
  step("CHAIN_USER_ADD: chain PROXY_INIT_OUTPUT", "No such file or directory", {
    advice: advice.noNftNat,
  }),
  step("CHAIN_USER_ADD: chain PROXY_INIT_OUTPUT", "Operation not supported", {
    advice: advice.noNftNat,
  }),
  step("TABLE_ADD: table nat", "Operation not supported", { advice: advice.noFamily }),
  step("TABLE_ADD: table nat", "No such file or directory", { advice: advice.noFamily }),
  step("CHAIN_ADD: chain OUTPUT", "Cannot allocate memory", { advice: advice.memory, ...passing }),
  step("TABLE_ADD: table nat", "No buffer space available", { advice: advice.memory, ...passing }),
  step("CHAIN_USER_ADD: chain PROXY_INIT_OUTPUT", "Device or resource busy", {
    advice: advice.lock,
    ...passing,
  }),
  step("CHAIN_ADD: chain OUTPUT", "Resource temporarily unavailable", {
    advice: advice.lock,
    ...passing,
  }),
  {
    name: "legacy has no memory",
    backend: "legacy",
    words: { stderr: "iptables-restore: line 9 failed: Memory allocation problem.\n", exitCode: 1 },
    said: "iptables-restore: line 9 failed: Memory allocation problem.",
    advice: advice.memory,
    ...passing,
  },
  {
    name: "legacy lacks a match, which it says of the line with COMMIT",
    backend: "legacy",
    words: {
      stderr: "iptables-restore: line 14 failed: No chain/target/match by that name.\n",
      exitCode: 1,
    },
    said: "iptables-restore: line 14 failed: No chain/target/match by that name.",
    advice: advice.modules,
  },
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
