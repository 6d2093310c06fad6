// Runs the commands once while the startup snapshot is built, so that what an ADD needs is loaded and compiled in it.
// Nothing of the building machine is read or written: netns, store, log and the tools' answers are made up here.
import { run } from "./command/run.ts";
import type { Deps } from "./deps.ts";
import type { Exec } from "./netns/exec.ts";

/** Warms the program up. What comes of the commands does not matter; that they run through does. */
export async function warmUp(real: Deps): Promise<void> {
  const records = new Map<string, Parameters<ReturnType<Deps["openStore"]>["write"]>[0]>();
  const netns = { path: "/", fd: -1, handle: "/", device: 1, inode: 1 };
  const deps: Deps = {
    ...real,
    exec: answering(real.exec),
    find: (name) => `/usr/sbin/${name}`,
    nssMask: () => [],
    openNetns: () => netns,
    closeNetns: () => undefined,
    openLog: () => real.openLog({ level: "silent", file: "" }),
    openStore: () => ({
      read: () => records.get("it"),
      write: (record) => void records.set("it", record),
      remove: () => undefined,
      entries: () => [],
      knowledge: () => ({ proven: ["nft"] }),
      keepKnowledge: () => undefined,
      prepare: () => undefined,
    }),
  };
  for (const command of ["ADD", "CHECK", "DEL", "STATUS", "GC", "VERSION"]) {
    const outcome = await run({ env: environment(command), readStdin: () => conf }, deps);
    if (outcome.exitCode !== 0) throw new Error(`warming up ${command} failed: ${outcome.stdout}`);
  }
}

const conf = JSON.stringify({
  cniVersion: "1.1.0",
  name: "warm",
  type: "sluice",
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

// A child is started, to have that warm too, but a harmless one; the answer is that of tools that did what they were told.
// Arguments and outputs as netfilter/client.ts has them: seven words a job, its save program the third, its text the last.
function answering(exec: Exec): Exec {
  const saved = new Map<string, string>();
  return async (request) => {
    await exec({ ...request, argv: ["/bin/true"] });
    const words = request.argv.slice(request.argv.indexOf("sluice") + 2);
    const jobs = Array.from({ length: words.length / 7 }, (_, i) => words.slice(7 * i, 7 * i + 7));
    const streams = jobs.flatMap(([, , save = "", , , , text = ""]) => {
      if (text !== "") saved.set(save, savedFrom(text));
      return ["", saved.get(save) ?? ""];
    });
    const statuses = jobs.map((_, i) => `${i} 0 0\n`).join("");
    return { exitCode: 0, timedOut: false, startError: "", outputs: [statuses, ...streams] };
  };
}

function savedFrom(restore: string): string {
  const rules = restore.split("\n").map((line) => line.replace(/^-I/, "-A"));
  const chains = rules.flatMap((line) => /^-N (\S+)/.exec(line)?.[1] ?? []);
  const declared = ["PREROUTING", "OUTPUT", ...chains].map((chain) => `:${chain} - [0:0]`);
  return ["*nat", ...declared, ...rules.filter((line) => line.startsWith("-A")), "COMMIT", ""].join(
    "\n",
  );
}
