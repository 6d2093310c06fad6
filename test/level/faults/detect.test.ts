// The backend where nobody names one: by the kubelet's hints, else by trial; without a trace in any netns, remembered for
// the boot, and the same however often it is asked.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { type Backend, backends, families } from "../../../src/netfilter/table.ts";
import type { LabNetns } from "../../lab/netns.ts";
import { complete, ownLines, save } from "../../lab/states.ts";
import { kernelState, stateConf } from "../netns/level.ts";
import { detected, detections, recordOf } from "./detected.ts";
import { freeConf, logLines, type TimedAnswer, test } from "./node.ts";
import { load, nameOf, readAll } from "./run/tables.ts";

type Hint = { readonly tool: string; readonly chain: string };

const chains = ["KUBE-IPTABLES-HINT", "KUBE-KUBELET-CANARY"];
const single: readonly Hint[] = chains.flatMap((chain) =>
  ["iptables-nft", "ip6tables-nft", "iptables-legacy", "ip6tables-legacy"].map((tool) => {
    return { tool, chain };
  }),
);
const trial = { backend: "nft", reason: "nft works on this node", provisional: true } as const;

test.concurrent.for(single)(
  "ADD takes the hint's backend and leaves no trace when $tool has $chain",
  async ({ tool, chain }, { node }) => {
    hint(node.host, { tool, chain });
    const backend: Backend = tool.endsWith("-nft") ? "nft" : "legacy";
    const before = [kernelState(node.host), legacyTables(node.host)];

    const answer = await node.call("ADD", freeConf("ipv4"));

    expect(answer.exitCode).toBe(0);
    const reason = `the kubelet's hint chains are in ${backend}`;
    const decision = { backend, reason, provisional: false };
    expect(detections(answer)).toStrictEqual([{ level: "info", ...decision, msg: detected }]);
    expect(node.stateFile("backend.json")).toMatchObject({
      decision,
      proven: [{ backend, family: "ipv4" }],
    });
    expect(recordOf(node)).toMatchObject({ backend, backendReason: reason });
    expect([kernelState(node.host), legacyTables(node.host)]).toStrictEqual(before);
    expect(ownLines(save({ netns: node.pod, backend, family: "ipv4" }))).toStrictEqual(complete);
    expect(legacyTables(node.pod)).toStrictEqual(backend === "nft" ? ["", ""] : ["nat", ""]);
  },
);

const doubled: readonly (readonly [string, string])[] = [
  ["iptables-nft", "iptables-legacy"],
  ["ip6tables-nft", "iptables-legacy"],
  ["iptables-nft", "ip6tables-legacy"],
];

test.concurrent.for(doubled)(
  "ADD takes nft and warns when both %s and %s have hint chains",
  async ([first, second], { node }) => {
    for (const tool of [second, first]) hint(node.host, { tool, chain: "KUBE-KUBELET-CANARY" });

    const answer = await node.call("ADD", freeConf("ipv4"));

    const reason =
      "the kubelet's hint chains are in nft (and legacy has them too: left from before?)";
    const decision = { backend: "nft", reason, provisional: false, doubtful: true };
    expect(detections(answer)).toStrictEqual([{ level: "warn", ...decision, msg: detected }]);
    expect(recordOf(node)).toMatchObject({ backend: "nft", backendReason: reason });
  },
);

test.concurrent("ADD tries nft, and says no word of warning, when there is no hint", async ({
  node,
}) => {
  const before = kernelState(node.host);

  const answer = await node.call("ADD", freeConf("ipv4", "ipv6"));

  expect(logLines(answer).map(({ level }) => level)).toStrictEqual(["info", "info"]);
  expect(detections(answer)).toStrictEqual([{ level: "info", ...trial, msg: detected }]);
  expect(kernelState(node.host)).toBe(before);
  expect(legacyTables(node.host)).toStrictEqual(["", ""]);
  expect(legacyTables(node.pod)).toStrictEqual(["", ""]);
});

test.concurrent("ADD gives the same answer and looks no further when it was detected before", async ({
  node,
  other,
}) => {
  await node.call("ADD", freeConf("ipv4"));
  const again = await node.call("ADD", freeConf("ipv4"));
  const second = await node.call("ADD", freeConf("ipv4"), { netns: other });

  const told = { backend: "nft", execs: 1 };
  expect(logLines(again)).toMatchObject([{ ...told, changed: [], msg: "done" }]);
  expect(logLines(second)).toMatchObject([{ ...told, changed: ["ipv4"], msg: "done" }]);
});

// istio#61019: there, the first detection made the legacy table that the second one counted.
test.concurrent("ADD decides the same way when all that was known is forgotten, and again", async ({
  node,
  other,
}) => {
  const answers: TimedAnswer[] = [];
  for (const netns of [node.pod, other, node.pod, other]) {
    writeFileSync(join(node.stateDir, "backend.json"), "");
    answers.push(await node.call("ADD", freeConf("ipv4"), { netns }));
  }

  const told = { level: "info", ...trial, msg: detected };
  expect(answers.map(detections)).toStrictEqual([[told], [told], [told], [told]]);
  const files = [node.host, node.pod, other].map(legacyTables);
  expect(files).toStrictEqual([
    ["", ""],
    ["", ""],
    ["", ""],
  ]);
});

describe("a decision without a hint", () => {
  test.concurrent("gives way when a hint shows before the first pod", async ({ node }) => {
    await node.call("STATUS", freeConf("ipv4"));
    expect(node.stateFile("backend.json")).toMatchObject({ decision: trial });
    hint(node.host, { tool: "iptables-legacy", chain: "KUBE-IPTABLES-HINT" });

    const answer = await node.call("ADD", freeConf("ipv4"));

    const reason = "the kubelet's hint chains are in legacy";
    const decision = { backend: "legacy", reason, provisional: false };
    expect(detections(answer)).toStrictEqual([{ level: "info", ...decision, msg: detected }]);
    expect(node.stateFile("backend.json")).toMatchObject({ decision });
  });

  test.concurrent("stays when a hint shows after the first pod", async ({ node, other }) => {
    await node.call("ADD", freeConf("ipv4"));
    hint(node.host, { tool: "iptables-legacy", chain: "KUBE-IPTABLES-HINT" });

    const answer = await node.call("ADD", freeConf("ipv4"), { netns: other });

    expect(detections(answer)).toStrictEqual([]);
    expect(logLines(answer)).toMatchObject([{ backend: "nft", msg: "done" }]);
    expect(node.stateFile("backend.json")).toMatchObject({
      decision: { ...trial, provisional: false },
    });
  });

  test.concurrent("is made anew when the node has booted since", async ({ node, other }) => {
    await node.call("ADD", freeConf("ipv4"));
    const file = join(node.stateDir, "backend.json");
    writeFileSync(file, readFileSync(file, "utf8").replace(/"bootId":"[^"]+"/, '"bootId":"x"'));
    hint(node.host, { tool: "iptables-legacy", chain: "KUBE-IPTABLES-HINT" });

    const answer = await node.call("ADD", freeConf("ipv4"), { netns: other });

    expect(detections(answer)).toMatchObject([{ backend: "legacy" }]);
  });
});

test.concurrent.for(backends)(
  "ADD keeps to the conf's %s when hints are in the other",
  async (mode, { node }) => {
    const other = mode === "nft" ? "legacy" : "nft";
    hint(node.host, { tool: `iptables-${other}`, chain: "KUBE-IPTABLES-HINT" });

    const answer = await node.call("ADD", stateConf(mode, ...families));

    expect(logLines(answer)).toMatchObject([{ backend: mode, msg: "done" }]);
    expect(recordOf(node)).toMatchObject({
      backend: mode,
      backendReason: "the conf's iptables-mode",
    });
  },
);

// istio#57827: a repair that detects anew writes to the other backend.
test.concurrent.for(backends)(
  "ADD stays with %s, where the pod's chains are, when hints are in the other",
  async (backend, { node }) => {
    const other = backend === "nft" ? "legacy" : "nft";
    hint(node.host, { tool: `iptables-${other}`, chain: "KUBE-IPTABLES-HINT" });
    const places = families.map((family) => ({ backend, family }));
    await load(node.pod, places, "linkerd-init's rules, interrupted");

    const answer = await node.call("ADD", freeConf(...families));

    expect(logLines(answer).at(-1)).toMatchObject({ backend, changed: families });
    expect(recordOf(node)).toMatchObject({ backend, backendReason: "own chains were there" });
    const held = [...(await readAll(node.pod))].filter(([, { own }]) => own.length > 0);
    expect(held.map(([name]) => name)).toStrictEqual(places.map(nameOf));
  },
);

function hint(host: LabNetns, { tool, chain }: Hint): void {
  host.run(`${tool}-restore`, ["--noflush"], `*mangle\n:${chain} - [0:0]\nCOMMIT\n`);
}

/** The tables that legacy has in the netns, by family: a probe that makes one shows here. */
function legacyTables(netns: LabNetns): string[] {
  const files = ["/proc/net/ip_tables_names", "/proc/net/ip6_tables_names"];
  return files.map((file) =>
    netns
      .run("cat", [file])
      .split("\n")
      .filter((name) => name !== "mangle")
      .join(" "),
  );
}
