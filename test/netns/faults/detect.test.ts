// The backend where nobody names one: by the kubelet's hints, else by trial; without a trace in any netns, remembered for
// the boot, and the same however often it is asked.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { type Backend, backends, families } from "../../../src/netfilter/table.ts";
import { load, nameOf, readAll } from "../../faults/tables.ts";
import {
  namesOf,
  realOnes,
  realTools,
  refusing,
  type says,
  type Tools,
  versioned,
} from "../../lab/fake-tools.ts";
import type { LabNetns } from "../../lab/netns.ts";
import { complete, linkerd, ownLines, save } from "../../lab/states.ts";
import { confOf, kernelState, stateConf } from "../level.ts";
import { errorJson, freeConf, logLines, type Node, type TimedAnswer, test } from "./node.ts";

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
    expect(detections(answer)).toStrictEqual([{ level: "info", ...decision, msg }]);
    expect(node.stateFile("backend.json")).toMatchObject({ decision, proven: [backend] });
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
    expect(detections(answer)).toStrictEqual([{ level: "warn", ...decision, msg }]);
    expect(recordOf(node)).toMatchObject({ backend: "nft", backendReason: reason });
  },
);

test.concurrent("ADD tries nft, and says no word of warning, when there is no hint", async ({
  node,
}) => {
  const before = kernelState(node.host);

  const answer = await node.call("ADD", freeConf("ipv4", "ipv6"));

  expect(logLines(answer).map(({ level }) => level)).toStrictEqual(["info", "info"]);
  expect(detections(answer)).toStrictEqual([{ level: "info", ...trial, msg }]);
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

  const told = { level: "info", ...trial, msg };
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
    expect(detections(answer)).toStrictEqual([{ level: "info", ...decision, msg }]);
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

/** Nodes whose names or kernels leave one backend only, and what comes of a trial there. */
const nodes: readonly { name: string; tools: Tools; backend: Backend; execs: number }[] = [
  {
    name: "has programs of both backends",
    tools: realTools,
    backend: "nft",
    execs: 3,
  },
  {
    name: "has programs of nft only",
    tools: realOnes(namesOf("-nft")),
    backend: "nft",
    execs: 3,
  },
  {
    name: "has programs of legacy only",
    tools: realOnes(namesOf("-legacy")),
    backend: "legacy",
    execs: 3,
  },
  {
    name: "has plain names only, of nft",
    tools: plain("-nft"),
    backend: "nft",
    execs: 3,
  },
  {
    name: "has plain names only, of legacy",
    tools: plain("-legacy"),
    backend: "legacy",
    execs: 3,
  },
  {
    name: "cannot match owners in nft",
    tools: { ...realTools, ...refusingNft("-m owner", ownerMissing()) },
    backend: "legacy",
    execs: 4,
  },
  {
    name: "has no nf_tables",
    tools: { ...realTools, ...all("-nft", noNfTables()) },
    backend: "legacy",
    execs: 4,
  },
];

test.concurrent.for(nodes)("ADD takes $backend when the node $name", async (entry, { node }) => {
  const { tools, backend, execs } = entry;
  node.tools.install(tools);

  const answer = await node.call("ADD", freeConf("ipv4"));

  const reason = `${backend} works on this node`;
  expect(detections(answer)).toMatchObject([{ backend, reason, provisional: true }]);
  expect(logLines(answer).at(-1)).toMatchObject({ backend, execs, changed: ["ipv4"] });
  expect(ownLines(save({ netns: node.pod, backend, family: "ipv4" }))).toStrictEqual(complete);
});

const texts = {
  gid: "-m owner --gid-owner",
  subnet: "-s 192.0.2.0/24",
  ports: "-m multiport --dports",
  comment: "-m comment",
  redirect: "-j REDIRECT",
} as const;

test.concurrent.for(Object.entries(texts))(
  "ADD tries all that pods may get, also if this one does not, when nft refuses its %s: %s",
  async ([, text], { node }) => {
    node.tools.install({ ...realTools, ...refusingNft(text, ownerMissing()) });

    const answer = await node.call("ADD", freeConf("ipv4"));

    expect(detections(answer)).toMatchObject([{ backend: "legacy" }]);
  },
);

const neither: readonly { name: string; tools: Tools; details: string }[] = [
  {
    name: "has no programs",
    tools: {},
    details: backends
      .map(
        (backend) =>
          `${backend}: no iptables programs of backend ${backend} for ipv4 on the node (install iptables 1.8 or later, or set linkerd.iptables-mode to what is there)`,
      )
      .join("; "),
  },
  {
    name: "has programs, and a kernel without tables",
    tools: { ...all("-nft", noNfTables()), ...all("-legacy", noNat()) },
    details: [
      "nft: /usr/sbin/iptables-nft-restore (nft, ipv4, table nat) failed: iptables-nft-restore v1.8.7 (nf_tables): Could not fetch rule set generation id: Invalid argument (the kernel has no nf_tables: load nf_tables, or set iptables-mode to legacy)",
      "legacy: /usr/sbin/iptables-legacy-restore (legacy, ipv4, table nat) failed: iptables-legacy-restore v1.8.7 (legacy): iptables-legacy-restore: unable to initialize table 'nat' (the kernel has no nat table for this backend: modprobe iptable_nat (ip6table_nat), or use nft)",
    ].join("; "),
  },
];

test.concurrent.for(neither)(
  "ADD fails with both reasons and what to do when the node $name",
  async ({ tools, details }, { node }) => {
    node.tools.install(tools);

    const answer = await node.call("ADD", freeConf("ipv4"));

    const message = "neither nft nor legacy iptables works on this node";
    expect(answer).toMatchObject({ exitCode: 1, stdout: errorJson(101, message, details) });
    expect(node.stateFile("backend.json")).toBeUndefined();
  },
);

// istio#58507: a lock that was busy during the probe was taken for a kernel without the table.
test.concurrent("ADD fails for now, and decides nothing, when a lock is held during the trial", async ({
  node,
}) => {
  const busy = { stderr: `${lockHeld}\n`, exitCode: 4 };
  node.tools.install({ ...realTools, ...refusingNft("*nat", busy) });

  const answer = await node.call("ADD", freeConf("ipv4"));

  const message = `/usr/sbin/iptables-nft-restore (nft, ipv4, table nat) failed in 8 tries: ${lockHeld}`;
  const error = errorJson(11, message, "another program is changing the rules; try again");
  expect(answer).toMatchObject({ exitCode: 1, stdout: error });
  expect(node.stateFile("backend.json")).toBeUndefined();
});

test.concurrent("ADD takes nft when a lock was held for a moment during the trial", async ({
  node,
}) => {
  const restore = `count=$(grep -c "^\${0##*/} " "$dir/calls")
[ "$count" -gt 2 ] && exec "$real/iptables-nft-restore" "$@"
echo "${lockHeld}" >&2; exit 4`;
  node.tools.install({ ...realTools, "iptables-nft-restore": { script: restore } });

  const answer = await node.call("ADD", freeConf("ipv4"));

  expect(detections(answer)).toMatchObject([{ backend: "nft", provisional: true }]);
});

/** What plain programs that are links to nothing known say of themselves, and the backend that they are held to be of. */
const versions: readonly { said: string; backend: Backend }[] = [
  { said: "iptables-restore v1.8.9 (nf_tables)", backend: "nft" },
  { said: "iptables-restore v1.8.9 (legacy)", backend: "legacy" },
  { said: "iptables-restore v1.6.2", backend: "legacy" },
];

test.concurrent.for(versions)(
  "ADD holds plain programs for $backend when they call themselves $said",
  async ({ said, backend }, { node }) => {
    node.tools.install({
      "iptables-restore": versioned(said, { link: `iptables-${backend}-restore` }),
      "iptables-save": { link: `iptables-${backend}-save` },
    });
    const conf = confOf({ linkerd: { ...linkerd, "iptables-mode": "plain" } });

    const answer = await node.call("ADD", conf);

    expect(logLines(answer)).toMatchObject([{ backend, changed: ["ipv4"], msg: "done" }]);
    expect(recordOf(node)).toMatchObject({
      backend,
      backendReason: `the plain iptables is ${backend}`,
    });
  },
);

// Before 1.6.2 restore does not know --version and waits for rules: stdin is closed for it.
test.concurrent("ADD does not hang when the plain restore reads stdin before it tells its version", async ({
  node,
}) => {
  const waiting = { script: `cat >/dev/null\nexec "$real/iptables-legacy-restore" "$@"` };
  const old = { script: `[ "$1" = --version ] && { cat; exit 0; }\n${waiting.script}` };
  node.tools.install({
    "iptables-restore": old,
    "iptables-save": { link: "iptables-legacy-save" },
  });
  const conf = confOf({ linkerd: { ...linkerd, "iptables-mode": "plain" } });

  const answer = await node.call("ADD", { ...conf, sluice: { "timeout-seconds": 5 } });

  expect(node.tools.calls()[0]).toBe("iptables-restore --version");
  expect(answer.durationMs).toBeLessThan(4_000);
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

const msg = "backend detected";

function detections(answer: Parameters<typeof logLines>[0]) {
  return logLines(answer).filter((line) => line["msg"] === msg);
}

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

function recordOf({ stateFile }: Node): unknown {
  return stateFile("attachments/lab,c1,eth0.json");
}

function plain(suffix: string): Tools {
  const names = namesOf("");
  return Object.fromEntries(
    names.map((name) => [name, { link: name.replace("tables", `tables${suffix}`) }]),
  );
}

function all(suffix: string, tool: ReturnType<typeof says>): Tools {
  return Object.fromEntries(namesOf(suffix).map((name) => [name, tool]));
}

function refusingNft(text: string, words: Parameters<typeof says>[0]): Tools {
  const names = ["iptables-nft-restore", "ip6tables-nft-restore"];
  return Object.fromEntries(names.map((name) => [name, refusing(text, words, name)]));
}

const lockHeld =
  "Another app is currently holding the xtables lock. Perhaps you want to use the -w option?";

function ownerMissing() {
  const stderr = [
    "Warning: Extension owner revision 0 not supported, missing kernel module?",
    "iptables-nft-restore v1.8.7 (nf_tables): ",
    "line 4: RULE_APPEND failed (No such file or directory): rule in chain PROXY_INIT_OUTPUT",
  ];
  return { stderr: `${stderr.join("\n")}\n`, exitCode: 4 };
}

function noNfTables() {
  const said = "v1.8.7 (nf_tables): Could not fetch rule set generation id: Invalid argument";
  return { script: `echo "\${0##*/} ${said}" >&2\nexit 4` };
}

function noNat() {
  const said = "v1.8.7 (legacy): ";
  return {
    script: `case $0 in *-save) exit 0 ;; esac
echo "\${0##*/} ${said}\${0##*/}: unable to initialize table 'nat'" >&2
exit 3`,
  };
}
