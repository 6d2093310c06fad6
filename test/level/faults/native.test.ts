// Rules that nft itself wrote into the nat table: iptables cannot show it then, which is neither empty nor in order.
import { describe, expect } from "vitest";
import type { Backend } from "../../../src/netfilter/table.ts";
import type { LabNetns } from "../../lab/netns.ts";
import { loadState, type StateName, save } from "../../lab/states.ts";
import { kernelState, stateConf } from "../netns/level.ts";
import { errorJson, freeConf, logLines, test } from "./node.ts";

describe("native nft rules in the nat table", () => {
  const said = "Table `nat' is incompatible, use 'nft' tool.";
  const advice =
    "rules written by nft itself stand in the nat table, so iptables cannot show it; remove them or use another table";
  const failed = `/usr/sbin/iptables-nft-restore (nft, ipv4, table nat) failed: ${said}`;
  const states: readonly StateName[] = [
    "nothing in it",
    "all in order",
    "linkerd-init's rules, interrupted",
  ];

  test.for(states)(
    "make ADD fail, and change nothing, when nft also holds %s",
    async (state, { node }) => {
      loadState({ netns: node.pod, backend: "nft", family: "ipv4" }, state);
      addNative(node.pod);
      const before = linesOf(node.pod);

      const byConf = await node.call("ADD", stateConf("nft", "ipv4"));
      const byChoice = await node.call("ADD", freeConf("ipv4"));

      const error = { exitCode: 1, stdout: errorJson(101, failed, advice) };
      expect([byConf, byChoice]).toMatchObject([error, error]);
      expect(linesOf(node.pod)).toStrictEqual(before);
      expect(save({ netns: node.pod, backend: "legacy", family: "ipv4" })).toBe("");
    },
  );

  test("are told by ADD over legacy, and are unverifiable to CHECK", async ({ node }) => {
    addNative(node.pod);
    const conf = stateConf("legacy", "ipv4");

    const answer = await node.call("ADD", conf);

    expect(answer.exitCode).toBe(0);
    expect(logLines(answer)).toMatchObject([
      {
        level: "warn",
        backend: "nft",
        family: "ipv4",
        said,
        msg: "the other backend's nat table cannot be shown; whether it redirects as well is not known",
      },
      { backend: "legacy", changed: ["ipv4"] },
    ]);
    const line = `unverifiable (ipv4 nat): found ${said} (nft, the other backend)`;
    expect((await node.call("CHECK", conf)).stdout).toBe(drifted("legacy", line));
  });
});

function drifted(backend: Backend, ...lines: readonly string[]): string {
  const count = lines.length === 1 ? "1 drift" : `${lines.length} drifts`;
  const message = `container c1 is not redirected as intended: ${count} (${backend})`;
  return errorJson(100, message, lines.join("\n"));
}

/** What the netns holds; a builtin chain without rules is nothing. */
function linesOf(netns: LabNetns): string[] {
  const lines = kernelState(netns).split("\n");
  return lines.filter((line) => !/^\s*(chain [A-Z]+ |type nat hook |}?$)/.test(line));
}

// The chain is the one that iptables makes, where it is not there yet.
function addNative(netns: LabNetns): void {
  const output = "type nat hook output priority -100; policy accept;";
  netns.run("nft", [
    `add table ip nat; add chain ip nat OUTPUT { ${output} }; add rule ip nat OUTPUT meta mark set 7 udp dport 80 redirect to :99`,
  ]);
}
