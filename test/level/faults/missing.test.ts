// Nodes that lack a program: ADD says which, and what to do.
import { expect } from "vitest";
import type { Family } from "../../../src/netfilter/table.ts";
import { realOnes, realTools, says, type Tools } from "../../lab/fake-tools.ts";
import { kernelState } from "../netns/level.ts";
import { advice, modeConf } from "./advice.ts";
import { errorJson, test } from "./node.ts";

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
    msg: "no iptables programs of backend nft for ipv4 on the node: iptables is legacy",
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
    msg: "iptables is nft and ip6tables is legacy",
    details: advice.oneBackend,
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

function hide(program: string): string {
  return `mount --bind /dev/null /usr/bin/${program}`;
}
