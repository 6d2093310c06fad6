// A node in a box: one netns plays the host, with a bridge, leases and libcni's cache of its own, and cnitool is the
// runtime. Pods are further netns. The machine's own netns, /var/lib/cni and /etc/cni stay as they are.
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa, execaSync } from "execa";
import { bin, cniPluginsDir } from "../../build/setup/paths.mjs";
import { type CniAnswer, plugin } from "./plugin.ts";
import { inNetns } from "./pod-nat.ts";

export type HostOptions = {
  /** What it is for: part of the names of its netns, and the name of its network. */
  readonly purpose: string;
  readonly cniVersion: string;
  readonly dualStack?: boolean;
  /** Keys of our entry's `linkerd`, over the ports and the uid that every pod has. */
  readonly linkerd?: Readonly<Record<string, unknown>>;
};

/** A netns of the box. What cnitool calls its container is made from the path, as cnitool does. */
export type Pod = { readonly name: string; readonly path: string; readonly containerId: string };

export type Verb = "add" | "check" | "del";

export type Host = Calls & {
  readonly network: string;
  readonly netns: Pod;
  /** Its files: conf list, plugins, leases, records. Other users may enter: a proxy's configuration can be put there. */
  readonly dir: string;
  /** Makes a netns with lo up, as a runtime does before it calls plugins. */
  readonly addPod: (name: string) => Pod;
  readonly removePod: (pod: Pod) => void;
  readonly remove: () => void;
};

export type Calls = {
  /** Runs the whole conf list through cnitool. */
  readonly cnitool: (verb: Verb, pod: Pod) => Promise<CniAnswer>;
  /** Calls our plugin alone, as libcni would, with the result that is in libcni's cache. */
  readonly plugin: (verb: Verb, pod: Pod) => Promise<CniAnswer>;
  /** What the bridge plugin itself printed in its last run. */
  readonly bridgeOutput: () => string;
  /** File names in our plugin's state directory, and the addresses that host-local holds reserved. */
  readonly records: () => string[];
  readonly leases: () => string[];
  /** The backend that the pod's record names. */
  readonly backendOf: (pod: Pod) => string;
};

export const gateway = "10.213.7.1";
export const bridgeName = "slc-br0";
const subnets = [`${gateway.replace(/\d+$/, "0")}/24`, "fd00:213:7::/64"];

/** Where programs are found: the machine's PATH, and what a non-root shell lacks of it. */
export const searchPath: string = `${process.env["PATH"] ?? ""}:/usr/sbin:/usr/bin:/sbin:/bin`;

/** Makes the box. Whoever makes it removes it, also when it fails half-way. */
export function makeHost(options: HostOptions): Host {
  const network = `slc-${options.purpose}`;
  const dir = mkdtempSync(join(tmpdir(), `${network}-`));
  chmodSync(dir, 0o755);
  const pods: Pod[] = [];
  const addPod = (name: string) => {
    const pod = podOf(`${network}-${process.pid}-${name}`);
    pods.push(pod);
    execaSync("ip", ["netns", "add", pod.name]);
    execaSync("ip", ["-n", pod.name, "link", "set", "lo", "up"]);
    return pod;
  };
  const remove = () => {
    for (const pod of pods.splice(0)) removeNetns(pod);
    rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
  };
  try {
    const list = layOut(dir, { ...options, network });
    const netns = addPod("host");
    return {
      network,
      netns,
      dir,
      addPod,
      removePod: removeNetns,
      remove,
      ...callsOf({ dir, netns, list }),
    };
  } catch (error) {
    remove();
    throw error;
  }
}

type ConfList = { readonly cniVersion: string; readonly name: string; readonly plugins: object[] };

type Box = { readonly dir: string; readonly netns: Pod; readonly list: ConfList };

function callsOf({ dir, netns, list }: Box): Calls {
  const env = {
    PATH: searchPath,
    CNI_PATH: join(dir, "bin"),
    NETCONFPATH: join(dir, "net.d"),
  };
  const run = async (argv: readonly string[], more: { env?: object; input?: string } = {}) => {
    const [file = "", ...args] = onHost(netns, dir, argv);
    const result = await execa(file, args, {
      env: { ...env, ...more.env },
      extendEnv: false,
      input: more.input ?? "",
      reject: false,
      stripFinalNewline: false,
    });
    return { exitCode: result.exitCode, stdout: result.stdout, stderr: result.stderr };
  };
  const recordFile = (pod: Pod) =>
    join(dir, "state/attachments", `${list.name},${pod.containerId},eth0.json`);
  return {
    cnitool: (verb, pod) => run([join(bin, "cnitool"), verb, list.name, pod.path]),
    plugin: (verb, pod) => {
      const { cniVersion, name } = list;
      const conf = {
        ...list.plugins.at(-1),
        cniVersion,
        name,
        prevResult: cachedResult(dir, list, pod),
      };
      const cni = {
        CNI_COMMAND: verb.toUpperCase(),
        CNI_CONTAINERID: pod.containerId,
        CNI_NETNS: pod.path,
        CNI_IFNAME: "eth0",
      };
      return run([join(dir, "bin/sluice")], { env: cni, input: JSON.stringify(conf) });
    },
    bridgeOutput: () => readFileSync(join(dir, "bin/bridge.out"), "utf8"),
    records: () => namesIn(join(dir, "state/attachments")),
    leases: () =>
      namesIn(join(dir, "leases", list.name)).filter((name) => /^[0-9a-f]+[.:]/.test(name)),
    backendOf: (pod) =>
      String(member(JSON.parse(readFileSync(recordFile(pod), "utf8")), "backend")),
  };
}

/** What libcni keeps of an attachment: the result of the whole list. */
function cachedResult(dir: string, list: ConfList, pod: Pod): unknown {
  const file = join(dir, "var-lib/cni/results", `${list.name}-${pod.containerId}-eth0`);
  return member(JSON.parse(readFileSync(file, "utf8")), "result");
}

// cnitool has no option for libcni's cache, /var/lib/cni: it sees another /var/lib.
function onHost(netns: Pod, dir: string, argv: readonly string[]): string[] {
  const script = 'mount --bind "$1" /var/lib && shift && exec "$@"';
  const hidden = ["unshare", "--mount", "sh", "-c", script, "sh", join(dir, "var-lib")];
  return [...inNetns(netns.path, hidden), ...argv];
}

function layOut(dir: string, options: HostOptions & { network: string }): ConfList {
  for (const name of ["bin", "net.d", "var-lib"]) mkdirSync(join(dir, name));
  const binary = (name: string) => join(dir, "bin", name);
  symlinkSync(join(cniPluginsDir, "host-local"), binary("host-local"));
  symlinkSync(join(cniPluginsDir, "bridge"), binary("bridge.real"));
  writeFileSync(binary("bridge"), recorder, { mode: 0o755 });
  symlinkSync(plugin, binary("sluice"));
  const list = confList(dir, options);
  writeFileSync(join(dir, "net.d/10-lab.conflist"), JSON.stringify(list, null, 2));
  return list;
}

// What a plugin printed is lost in libcni, which hands it on: the real one's stdout is kept on its way.
const recorder = `#!/bin/sh
"$0.real" >"$0.out"
status=$?
cat "$0.out"
exit $status
`;

function confList(dir: string, options: HostOptions & { network: string }): ConfList {
  const families = options.dualStack ? subnets : subnets.slice(0, 1);
  return {
    cniVersion: options.cniVersion,
    name: options.network,
    plugins: [
      {
        type: "bridge",
        bridge: bridgeName,
        isGateway: true,
        ipam: {
          type: "host-local",
          dataDir: join(dir, "leases"),
          ranges: families.map((subnet) => [{ subnet }]),
          routes: families.map((subnet) => ({ dst: subnet.includes(":") ? "::/0" : "0.0.0.0/0" })),
        },
      },
      {
        type: "sluice",
        linkerd: {
          "incoming-proxy-port": 4143,
          "outgoing-proxy-port": 4140,
          "proxy-uid": 2102,
          ipv6: options.dualStack === true,
          ...options.linkerd,
        },
        sluice: { "state-dir": join(dir, "state") },
      },
    ],
  };
}

function podOf(name: string): Pod {
  const path = `/run/netns/${name}`;
  const id = createHash("sha512").update(path).digest("hex").slice(0, 20);
  return { name, path, containerId: `cnitool-${id}` };
}

// More than once: a Ctrl-C at the terminal reaches the child as well.
function removeNetns({ name, path }: Pod): void {
  for (let tries = 0; tries < 3 && existsSync(path); tries++) {
    execaSync("ip", ["netns", "del", name], { reject: false });
  }
}

function namesIn(dir: string): string[] {
  return existsSync(dir) ? readdirSync(dir) : [];
}

function member(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null
    ? Object.entries(value).find(([name]) => name === key)?.[1]
    : undefined;
}
