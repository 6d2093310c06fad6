// A node in memory for the commands: iptables and its tables, netns, records, log, clock, API. Nothing of the real one.
import { type Output, run } from "../../src/command/run.ts";
import type { Deps } from "../../src/deps.ts";
import { Fault } from "../../src/fault.ts";
import type { KubeReader } from "../../src/kube/reader.ts";
import type { Logger } from "../../src/log.ts";
import type { ExecRequest, ExecResult } from "../../src/netns/exec.ts";
import type { Netns } from "../../src/netns/path.ts";
import type { Memory } from "../../src/node/memory.ts";
import { type FakeIptables, makeFakeIptables } from "./iptables.ts";
import { type MemoryStore, makeMemory, makeMemoryStore } from "./store.ts";

export type World = {
  readonly iptables: FakeIptables;
  readonly store: MemoryStore;
  readonly memory: Memory;
  /** All log lines: level, message, and fields; errors as text. */
  readonly lines: object[];
  /** Programs on the node. */
  readonly programs: Set<string>;
  /** What children asked for, in order. */
  readonly asked: ExecRequest[];
  /** What becomes of the next children, in turn: this in place of what they would do, or of what they did. */
  readonly execFaults: (Partial<ExecResult> | ((did: ExecResult) => ExecResult))[];
  /** Netns by path, or why they cannot be opened. */
  readonly netns: Map<string, Netns | Fault>;
  /** Those that are open now. */
  readonly open: Set<Netns>;
  /** Addresses in every netns. */
  readonly addresses: string[];
  /** Whether an interface other than lo has IPv6 not disabled, in every netns. */
  readonly ipv6: { enabled: boolean };
  /** Kernel settings by path. */
  readonly sysctls: Map<string, string>;
  readonly kube: { reader: KubeReader | undefined };
  readonly deps: Deps;
  /** Milliseconds since the world began; sleeping moves them on. */
  readonly time: { ms: number };
  /** One CNI call. */
  readonly call: (env: Readonly<Record<string, string>>, stdin: unknown) => Promise<Output>;
};

export const netnsPath = "/run/netns/a";
export const epochMs = Date.parse("2026-11-30T02:40:56.000Z");

const allPrograms = ["iptables", "ip6tables"].flatMap((family) =>
  ["nft", "legacy"].flatMap((backend) =>
    ["restore", "save"].map((verb) => `${family}-${backend}-${verb}`),
  ),
);

/** `change` replaces some of what the commands get, for what the world has no switch for. */
export function makeWorld(change: Partial<Deps> = {}): World {
  const world: Omit<World, "deps" | "call"> = {
    iptables: makeFakeIptables(),
    store: makeMemoryStore(),
    memory: makeMemory(),
    lines: [],
    programs: new Set([...allPrograms, "nsenter", "unshare", "timeout", "cat"]),
    asked: [],
    execFaults: [],
    netns: new Map([[netnsPath, makeNetns(netnsPath, 1)]]),
    open: new Set(),
    addresses: [],
    ipv6: { enabled: false },
    sysctls: new Map(),
    kube: { reader: undefined },
    time: { ms: 0 },
  };
  const deps: Deps = {
    exec: (request) => exec(world, request),
    toolbox: {
      find: (name) => (world.programs.has(name) ? `/sbin/${name}` : undefined),
      shell: "/bin/sh",
      env: { PATH: "/sbin", LC_ALL: "C" },
    },
    nssMask: () => [],
    clock: {
      monotonicMs: () => world.time.ms,
      epochMs: () => epochMs + world.time.ms,
      sleep: (ms) => {
        world.time.ms += ms;
        return Promise.resolve();
      },
    },
    openNetns: ({ path }) => openNetns(world, path),
    closeNetns: (netns) => {
      world.open.delete(netns);
    },
    openStore: () => world.store,
    openMemory: () => world.memory,
    openKube: () => {
      if (world.kube.reader === undefined) throw new Error("the API is not to be asked here");
      return Promise.resolve(world.kube.reader);
    },
    openLog: () => recorder(world.lines),
    ...change,
  };
  const call: World["call"] = (env, stdin) =>
    run(
      { env, readStdin: () => (typeof stdin === "string" ? stdin : JSON.stringify(stdin)) },
      deps,
    );
  return { ...world, deps, call };
}

/** A netns that the fakes know by its path. */
export function makeNetns(path: string, inode: number): Netns {
  return { path, fd: inode, handle: path, device: 4, inode };
}

function openNetns(world: Pick<World, "netns" | "open">, path: string): Netns {
  const found =
    world.netns.get(path) ?? new Fault("netns-gone", `CNI_NETNS ${path} cannot be opened`);
  if (found instanceof Fault) throw found;
  world.open.add(found);
  return found;
}

function recorder(lines: object[]): Logger {
  const at = (level: string) => (fields: Readonly<Record<string, unknown>>, message: string) => {
    const told = Object.entries(fields).map(([key, value]) => {
      return [key, value instanceof Error ? String(value) : value] as const;
    });
    lines.push({ level, message, ...Object.fromEntries(told) });
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

type Node = Pick<World, "iptables" | "asked" | "execFaults" | "addresses" | "ipv6" | "sysctls">;

async function exec(world: Node, request: ExecRequest): Promise<ExecResult> {
  world.asked.push(request);
  const fault = world.execFaults.shift() ?? {};
  if (typeof fault === "function") return fault(await answer(world, request));
  if (Object.keys(fault).length === 0) return await answer(world, request);
  return { ...ended(request.outputs), ...fault };
}

function answer(world: Node, request: ExecRequest): Promise<ExecResult> {
  const { argv, outputs } = request;
  const file = argv.at(-1) ?? "";
  if (!file.startsWith("/proc/sys/")) {
    const lines = presenceLines(world);
    world.iptables.presence.splice(0, Infinity, ...lines);
    return world.iptables.exec(request);
  }
  if (argv.includes("/bin/sh")) world.sysctls.set(file, argv.at(-2) ?? "");
  return Promise.resolve(ended(outputs, `${world.sysctls.get(file) ?? ""}\n`));
}

function ended(outputs: number, stdout = ""): ExecResult {
  const silent = new Array<string>(outputs - 1).fill("");
  return { exitCode: 0, timedOut: false, startError: "", outputs: [stdout, ...silent] };
}

// As src/netfilter/iptables/presence.ts has the shell say it: IPv6 addresses in full, without colons.
function presenceLines({ addresses, ipv6 }: Node): string[] {
  const beyond = addresses.filter((address) => !/^(127\.|169\.254\.|fe80)/.test(address));
  const [ipv4Address, ipv6Address] = [
    beyond.find((address) => !address.includes(":")),
    beyond.find((address) => address.includes(":"))?.replaceAll(":", ""),
  ];
  const isPossible = ipv6.enabled || ipv6Address !== undefined;
  return [
    ipv4Address === undefined ? "ipv4 none" : `ipv4 address ${ipv4Address}`,
    ipv6Address === undefined ? "ipv6 none" : `ipv6 address ${ipv6Address}`,
    ...(isPossible ? ["ipv6 possible"] : []),
  ];
}
