// A pod on a wire, and the truth about its traffic: not what the rules look like, but whether the kernel sends a connection
// to the proxy. Nobody listens anywhere: the counters of the redirects say where a connection went.
import { execa } from "execa";
import { ownChains } from "../../src/mesh/linkerd/names.ts";
import { type Backend, type Family, families } from "../../src/netfilter/table.ts";
import { type LabNetns, makeNetns } from "../lab/netns.ts";
import { linkerd } from "../lab/states.ts";
import { runInside } from "../level/faults/run/tables.ts";
import type { Command } from "./arbitrary/tampering.ts";

export type Pod = {
  readonly netns: LabNetns;
  /** Runs commands inside, one after another; what is refused does nothing. */
  readonly tamper: (commands: readonly Command[]) => Promise<void>;
  /** The connections, of some in each direction and family, that did not meet our redirect. */
  readonly passedBy: (backend: Backend) => Promise<string[]>;
  /** Own chains with rules in them, by backend and family. Asked for by name: a save can be forged by a comment. */
  readonly filled: () => Promise<string[]>;
  /** All that is others' in the nat tables, as save prints it, without counters. */
  readonly foreign: () => Promise<string[]>;
  readonly remove: () => void;
};

const addresses = {
  ipv4: { pod: "10.9.0.2", peer: "10.9.0.1", bits: 24 },
  ipv6: { pod: "fd00:9::2", peer: "fd00:9::1", bits: 64 },
} as const;

/** Ports that the conf of test/lab/states.ts does not exclude. */
const ports = [8080, 9, 443] as const;

export async function makePod(): Promise<Pod> {
  const [netns, peer] = [makeNetns("pod"), makeNetns("peer")];
  const remove = () => {
    for (const one of [netns, peer]) one.remove();
  };
  try {
    await layWire(netns, peer);
  } catch (error) {
    remove();
    throw error;
  }
  return {
    netns,
    tamper: async (commands) => {
      const lines = commands.map((words) => `${words.map(quoted).join(" ")} 2>/dev/null || true`);
      await runInside(netns, lines.join("\n"));
    },
    passedBy: async (backend) => {
      const outbound = await missing(netns, { from: netns, to: "peer", backend });
      return [...outbound, ...(await missing(netns, { from: peer, to: "pod", backend }))];
    },
    filled: async () => (await runInside(netns, asking)).split("\n").filter((line) => line !== ""),
    foreign: async () => foreignIn(await runInside(netns, saving)),
    remove,
  };
}

// How many lines a chain is printed as when it is empty, by program.
const asking = ownChains
  .flatMap((chain) => [
    holding("nft ipv4", `nft list chain ip nat ${chain}`, 4),
    holding("nft ipv6", `nft list chain ip6 nat ${chain}`, 4),
    holding("legacy ipv4", `iptables-legacy -t nat -S ${chain}`, 1),
    holding("legacy ipv6", `ip6tables-legacy -t nat -S ${chain}`, 1),
  ])
  .join("\n");

function holding(place: string, command: string, emptyLines: number): string {
  return `[ "$(${command} 2>/dev/null | wc -l)" -le ${emptyLines} ] || echo "${place}: ${command}"`;
}

const saving = ["iptables-nft", "ip6tables-nft", "iptables-legacy", "ip6tables-legacy"]
  .map((program) => `${program}-save 2>/dev/null | sed "s/^/${program} /"`)
  .join("\n");

// Line by line, whatever table a line pretends to stand in: what a comment forges is the same before and after.
function foreignIn(saved: string): string[] {
  const ours = [
    /^\S+ (?::|-A )PROXY_INIT_(?:REDIRECT|OUTPUT) /,
    /^\S+ -A (?:PREROUTING|INPUT|OUTPUT|POSTROUTING) .*-[jg] PROXY_INIT_(?:REDIRECT|OUTPUT)$/,
    // What a table brings along that is made for our rules.
    /^\S+ (?:#|\*nat$|COMMIT$|:[A-Z]+ ACCEPT )/,
  ];
  return saved
    .split("\n")
    .filter((line) => line !== "" && !ours.some((pattern) => pattern.test(line)))
    .map((line) => line.replaceAll(/\[\d+:\d+\]/g, ""));
}

type Direction = {
  readonly from: LabNetns;
  readonly to: "pod" | "peer";
  readonly backend: Backend;
};

// One connection after another, and after each of them the counter must be one more.
async function missing(netns: LabNetns, { from, to, backend }: Direction): Promise<string[]> {
  const found: string[] = [];
  for (const family of families) {
    const before = await counted(netns, { to, backend, family });
    const opening = ports.map((port) => `(exec 3<>/dev/tcp/${addresses[family][to]}/${port}) 2>&-`);
    const script = `${opening.map((one) => `${one} || true`).join("\n")}`;
    await execa("nsenter", [`--net=${from.path}`, "--", "timeout", "10", "bash", "-c", script]);
    const redirected = (await counted(netns, { to, backend, family })) - before;
    if (redirected < ports.length) {
      found.push(`${ports.length - redirected} of ${ports.length} to the ${to} (${family})`);
    }
  }
  return found;
}

type Counter = Pick<Direction, "to" | "backend"> & { readonly family: Family };

// Packets that were sent to the proxy's port, by whichever rule.
async function counted(netns: LabNetns, { to, backend, family }: Counter): Promise<number> {
  const program = `${family === "ipv4" ? "iptables" : "ip6tables"}-${backend}-save`;
  const saved = await runInside(netns, `${program} --counters -t nat`);
  const port = to === "peer" ? linkerd["outgoing-proxy-port"] : linkerd["incoming-proxy-port"];
  const redirects = saved.matchAll(
    new RegExp(`^\\[(\\d+):\\d+\\] .* -j REDIRECT --to-ports ${port}$`, "gm"),
  );
  return [...redirects].reduce((sum, [, packets]) => sum + Number(packets), 0);
}

async function layWire(netns: LabNetns, peer: LabNetns): Promise<void> {
  const link = ["link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", peer.name];
  await execa("ip", ["-n", netns.name, ...link]);
  for (const [one, side] of [
    [netns, "pod"],
    [peer, "peer"],
  ] as const) {
    const lines = families.map((family) => {
      const { [side]: address, bits } = addresses[family];
      return `ip address add ${address}/${bits} dev eth0${family === "ipv6" ? " nodad" : ""}`;
    });
    await runInside(one, ["ip link set eth0 up", ...lines].join("\n"));
  }
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
