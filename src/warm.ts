// Runs the commands once while the startup snapshot is built, so that what an ADD needs is loaded and compiled in it: most
// of a cold ADD's time goes into compiling. Works in the directory that it is run in, and on nothing else.
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { connect } from "node:net";
import { addAbortSignal } from "node:stream";
import { urlToHttpOptions } from "node:url";
import { queryObjects, setFlagsFromString } from "node:v8";
import { run } from "./command/run.ts";
import type { Deps } from "./deps.ts";
import { readArguments } from "./netfilter/iptables/layout.ts";
import type { Exec } from "./netns/exec.ts";
import { readStdin, writeAll } from "./stdio.ts";

/** Warms the program up. What comes of the commands does not matter; that they run through does. */
export async function warmUp(makeDeps: () => Deps): Promise<void> {
  await runAll(makeDeps());
  forgetCode();
  await runAll(makeDeps());
  await exchange();
}

// What the API client needs of those modules of Node's that are loaded anyway: an address read, a word each way. The build
// has the other side.
async function exchange(): Promise<void> {
  urlToHttpOptions(new URL("https://192.0.2.1:6443/api"));
  const socket = connect(otherSide).setNoDelay(true).setKeepAlive(true, 1_000);
  addAbortSignal(new AbortController().signal, socket).write("word");
  await once(socket.resume(), "close");
}

/** The socket, in the current directory, of somebody who answers a word with another, and that was it. */
export const otherSide = "socket";

// Building a snapshot, Node compiles all of its own modules whole: a megabyte that each start would read. So all code is
// thrown away once everything is loaded, and what then runs is compiled anew, and kept.
function forgetCode(): void {
  setFlagsFromString("--flush-bytecode");
  setFlagsFromString("--stress-flush-code");
  collectGarbage();
  // As at each start (build/snapshot.ts): code that is cached under other flags is not taken.
  setFlagsFromString("--no-stress-flush-code");
  setFlagsFromString("--no-flush-bytecode");
}

// There is no gc() while a snapshot is built; counting objects begins with it.
function collectGarbage(): void {
  queryObjects(Nothing);
}

class Nothing {}

async function runAll(real: Deps): Promise<void> {
  const deps: Deps = {
    ...real,
    exec: answering(real.exec),
    toolbox: {
      ...real.toolbox,
      find: (name) => {
        real.toolbox.find(name);
        return `/usr/sbin/${name}`;
      },
    },
    nssMask: () => {
      real.nssMask();
      return [];
    },
    openNetns: () => real.openNetns({ path: "/proc/self/ns/net", allowOwn: true }),
  };
  const nowhere = openSync("/dev/null", "w");
  for (const command of ["ADD", "CHECK", "DEL", "STATUS", "GC", "VERSION"]) {
    const outcome = await run({ env: environment(command), readStdin: () => conf }, deps);
    if (outcome.exitCode !== 0) throw new Error(`warming up ${command} failed: ${outcome.stdout}`);
    writeAll(nowhere, outcome.stdout);
    await readStdin({ mostBytes: 1, remainingMs: () => 1 });
  }
  closeSync(nowhere);
  // Not the API client, nor the YAML it reads, which are beside the snapshot: an ADD that does not ask pays nothing.
}

/** The current directory under a name that is the same for all builders. */
const here = "/proc/self/cwd";

const conf = JSON.stringify({
  cniVersion: "1.1.0",
  name: "warm",
  type: "sluice",
  log_file: `${here}/log`,
  kubernetes: {},
  runtimeConfig: {
    "io.kubernetes.cri.pod-annotations": {
      "linkerd.io/proxy-version": "1",
      "config.linkerd.io/skip-inbound-ports": "25,80-90",
    },
  },
  linkerd: {
    "incoming-proxy-port": 4143,
    "outgoing-proxy-port": "4140",
    "proxy-uid": 2102,
    "inbound-ports-to-ignore": ["4190", "4191"],
    "subnets-to-ignore": ["10.0.0.0/8", "fd00::/8"],
    "iptables-mode": "nft",
    ipv6: true,
  },
  sluice: { "state-dir": `${here}/state` },
  prevResult: {
    cniVersion: "1.1.0",
    ips: [{ address: "192.0.2.2/24" }, { address: "2001:db8::2/64" }],
  },
});

function environment(command: string): Record<string, string> {
  return {
    CNI_COMMAND: command,
    CNI_CONTAINERID: "warm",
    CNI_NETNS: "/",
    CNI_IFNAME: "eth0",
    CNI_PATH: "/",
    CNI_ARGS: "K8S_POD_NAMESPACE=warm;K8S_POD_NAME=warm",
  };
}

// A child is started, to have that warm too, but a harmless one, which says a word on each of its outputs; the answer is that
// of tools that did what they were told.
// nft's answer stands behind a NUL, which is not looked at where nobody asked.
function answering(exec: Exec): Exec {
  const saved = new Map<string, string>();
  return async (request) => {
    const words = Array.from({ length: request.outputs }, (_, i) => `echo word >&${i + 1}`);
    await exec({ ...request, argv: ["/bin/sh", "-c", words.join(";")] });
    const { jobs, native } = readArguments(request.argv);
    const streams = jobs.flatMap(({ save, text }) => {
      if (text !== "") saved.set(save, savedFrom(text));
      return ["", saved.get(save) ?? ""];
    });
    const asked = native.slice(1);
    const statuses = [...jobs.map((_, i) => `${i} 0 0\n`), ...asked.map(() => "nft 0\n")].join("");
    const last = [streams.at(-1) ?? "", ...asked.map(() => listing)].join("\0");
    const outputs = [statuses, ...streams.slice(0, -1), last];
    return { exitCode: 0, timedOut: false, startError: "", outputs };
  };
}

// What nft tells of such a netns.
const listing = JSON.stringify({
  nftables: [
    { table: { family: "ip", name: "nat" } },
    {
      chain: {
        family: "ip",
        table: "nat",
        name: "OUTPUT",
        type: "nat",
        hook: "output",
        prio: -100,
      },
    },
    {
      rule: {
        ...{ family: "ip", table: "nat", chain: "OUTPUT" },
        expr: [
          { match: { op: "==", left: { meta: { key: "l4proto" } }, right: "tcp" } },
          { jump: { target: "PROXY_INIT_OUTPUT" } },
        ],
      },
    },
  ],
});

// As iptables-save has it: the kernel's chains with a policy, and the rules chain by chain.
function savedFrom(restore: string): string {
  const rules = restore.split("\n").map((line) => line.replace(/^-I/, "-A"));
  const own = rules.flatMap((line) => /^-N (\S+)/.exec(line)?.[1] ?? []);
  const builtin = ["PREROUTING", "OUTPUT"];
  const inTurn = [...builtin, ...own].flatMap((chain) => {
    return rules.filter((line) => line.startsWith(`-A ${chain} `));
  });
  const declared = [
    ...builtin.map((chain) => `:${chain} ACCEPT [0:0]`),
    ...own.map((chain) => `:${chain} - [0:0]`),
  ];
  return ["*nat", ...declared, ...inTurn, "COMMIT", ""].join("\n");
}
