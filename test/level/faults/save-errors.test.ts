// What ADD and CHECK say when save fails: ADD has loaded its rules by then, and takes back what it cannot prove; to CHECK a
// tool that fails is no drift.
import { describe, expect } from "vitest";
import { realTools, says, type Tool } from "../../lab/fake-tools.ts";
import { loadState } from "../../lab/states.ts";
import { kernelState } from "../netns/level.ts";
import { advice, modeConf } from "./advice.ts";
import { errorJson, test } from "./node.ts";

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
