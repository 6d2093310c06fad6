import { expect } from "vitest";
import { type Backend, backends } from "../../../src/netfilter/table.ts";
import {
  namesOf,
  realOnes,
  realTools,
  refusing,
  type says,
  type Tools,
  versioned,
} from "../../lab/fake-tools.ts";
import { complete, linkerd, ownLines, save } from "../../lab/states.ts";
import { confOf } from "../netns/level.ts";
import { detections, recordOf } from "./detected.ts";
import { errorJson, freeConf, logLines, test } from "./node.ts";

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
