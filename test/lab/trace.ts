// Where does this packet go? Walks a packet through a nat table's rules, as the kernel would. Golden files say how rules
// are spelt; this says what they mean. It knows the matches that we and linkerd's tools use, and throws at any other.
import { BlockList } from "node:net";
import type { Family, Ruleset, Table } from "../../src/netfilter/table.ts";
import { ledChains } from "./rulesets.ts";

export type Packet = {
  /** The builtin chain that it comes to: what the pod sends, or what comes to the pod. */
  readonly chain: "OUTPUT" | "PREROUTING";
  readonly proto?: "tcp" | "udp";
  readonly dport: number;
  readonly src?: string;
  /** The device it leaves by. */
  readonly out?: "lo" | "eth0";
  /** Whose it is; only what the pod sends has an owner that is known. */
  readonly uid?: number;
  readonly gid?: number;
};

/** `REDIRECT <port>`, or ACCEPT: the packet goes where it was sent to. */
export type Verdict = string;

type Match = (packet: Packet) => boolean;
type Rule = { readonly matches: readonly Match[]; readonly target: string; readonly port: string };

/** The table that a netns has which holds the ruleset and nothing else. */
export function tableOf(ruleset: Ruleset): Table {
  const chains = ledChains(ruleset);
  const own = chains.map(({ name, rules }) => [name, rules] as const);
  const hooks = chains.map(({ hook, jump }) => [hook, [jump]] as const);
  return { chains: new Map([...hooks, ...own]) };
}

/** Where one packet goes. */
export function trace(where: Ruleset | Table, packet: Packet): Verdict {
  return tracer(where)(packet);
}

/** Where packets go: reads the rules once, for many packets. */
export function tracer(where: Ruleset | Table): (packet: Packet) => Verdict {
  const table = "family" in where ? tableOf(where) : where;
  const chains: Chains = new Map(
    [...table.chains].map(([name, rules]) => [name, rules.map(parseRule)]),
  );
  return (packet) => walk(chains, packet.chain, packet) ?? "ACCEPT";
}

type Chains = ReadonlyMap<string, readonly Rule[]>;

/** What becomes of the packet in the chain; undefined when it leaves the chain as it came. */
function walk(chains: Chains, chain: string, packet: Packet): Verdict | undefined {
  const matching = (chains.get(chain) ?? []).filter(({ matches }) =>
    matches.every((match) => match(packet)),
  );
  for (const { target, port } of matching) {
    if (target === "RETURN") return undefined;
    const verdict = chains.has(target) ? walk(chains, target, packet) : verdictOf(target, port);
    if (verdict !== undefined) return verdict;
  }
  return undefined;
}

function verdictOf(target: string, port: string): Verdict {
  if (target === "ACCEPT") return target;
  if (target === "REDIRECT") return `REDIRECT ${port}`;
  throw new Error(`trace does not know the target ${target}`);
}

function parseRule(rule: string): Rule {
  const matches: Match[] = [];
  let [target, port] = ["", ""];
  const [, , ...words] = rule.match(/"[^"]*"|\S+/g) ?? [];
  for (let at = 0; at < words.length; at += 2) {
    const [option = "", value = ""] = words.slice(at);
    if (option === "-j") target = value;
    else if (option === "--to-ports") port = value;
    else matches.push(parseMatch(option, value));
  }
  return { matches, target, port };
}

function parseMatch(option: string, value: string): Match {
  switch (option) {
    case "-m":
      if (["comment", "multiport", "owner", "tcp"].includes(value)) return () => true;
      break;
    case "--comment":
      return () => true;
    case "-p":
      return ({ proto = "tcp" }) => proto === value;
    case "-o":
      return ({ out = "eth0" }) => out === value;
    case "-s":
      return sourceMatch(value);
    case "--dport":
    case "--dports":
      return portMatch(value);
    case "--uid-owner":
      return (packet) => owner(packet, "uid") === Number(value);
    case "--gid-owner":
      return (packet) => owner(packet, "gid") === Number(value);
  }
  throw new Error(`trace does not know the match ${option} ${value}`);
}

function owner(packet: Packet, kind: "uid" | "gid"): number {
  if (packet.chain !== "OUTPUT") throw new Error("the kernel refuses an owner match off OUTPUT");
  return packet[kind] ?? 0;
}

function portMatch(value: string): Match {
  const ranges = value.split(",").map((word) => word.split(":").map(Number));
  return ({ dport }) => ranges.some(([from = 0, to = from]) => dport >= from && dport <= to);
}

function sourceMatch(subnet: string): Match {
  const [address = "", prefix] = subnet.split("/");
  const family = address.includes(":") ? "ipv6" : "ipv4";
  const list = new BlockList();
  list.addSubnet(address, Number(prefix), family);
  return ({ src = "" }) => list.check(src, family);
}

/**
 * Packets that tell rules apart: at and beside every port, owner and subnet that the rules name, by lo and by eth0,
 * TCP and UDP.
 */
export function packetsAround(rules: readonly string[], family: Family): Packet[] {
  const text = rules.join("\n");
  const ports = around(numbersIn(text, /--(?:dports?|to-ports) (\S+)/g), [1, 443, 65535], 65535);
  const uids = around(numbersIn(text, /--uid-owner (\S+)/g), [0, 1000], 4_294_967_295);
  const gids = around(numbersIn(text, /--gid-owner (\S+)/g), [0, 1000], 4_294_967_295);
  const owners = [...uids.map((uid) => ({ uid })), ...gids.map((gid) => ({ gid, uid: 1000 }))];
  const sent = owners.flatMap((who): Packet[] =>
    (["lo", "eth0"] as const).flatMap((out) =>
      ports.map((dport): Packet => ({ chain: "OUTPUT", dport, out, ...who })),
    ),
  );
  const came = sourcesAround(text, family).flatMap((src) =>
    ports.map((dport): Packet => ({ chain: "PREROUTING", dport, src })),
  );
  const packets = [...sent, ...came];
  const alsoUdp = packets.filter(({ dport }) => dport === 443 || dport === ports[1]);
  return [...packets, ...alsoUdp.map((packet): Packet => ({ ...packet, proto: "udp" }))];
}

function numbersIn(text: string, pattern: RegExp): number[] {
  return [...text.matchAll(pattern)].flatMap(([, value = ""]) => value.split(/[,:]/).map(Number));
}

function around(found: readonly number[], always: readonly number[], most: number): number[] {
  const near = found.flatMap((value) => [value - 1, value, value + 1]);
  const all = [...new Set([...near, ...always])].toSorted((a, b) => a - b);
  return all.filter((value) => value >= (always[0] ?? 0) && value <= most);
}

function sourcesAround(text: string, family: Family): string[] {
  const bits = family === "ipv4" ? 32 : 128;
  const strangers = family === "ipv4" ? ["192.0.2.1", "127.0.0.1"] : ["2001:db8::1", "::1"];
  const edges = [...text.matchAll(/-s (\S+)\/(\d+)/g)].flatMap(([, address = "", prefix]) => {
    const first = toNumber(address, family);
    const size = 1n << BigInt(bits - Number(prefix));
    return [first - 1n, first, first + size - 1n, first + size];
  });
  const inside = edges.filter((edge) => edge >= 0n && edge < 1n << BigInt(bits));
  return [...new Set([...strangers, ...inside.map((edge) => toAddress(edge, family))])];
}

function toNumber(address: string, family: Family): bigint {
  if (family === "ipv4") return join(address.split(".").map(Number), 8n);
  const hex = address.replace(/[\d.]+\.\d+$/, (quads) => {
    const number = toNumber(quads, "ipv4");
    return `${(number >> 16n).toString(16)}:${(number & 0xffffn).toString(16)}`;
  });
  const [head = [], tail = []] = hex.split("::").map((half) => half.split(":").filter(Boolean));
  const gap = new Array<string>(8 - head.length - tail.length).fill("0");
  return join(
    [...head, ...gap, ...tail].map((group) => Number.parseInt(group, 16)),
    16n,
  );
}

function toAddress(number: bigint, family: Family): string {
  const [count, width, base] = family === "ipv4" ? [4, 8n, 10] : [8, 16n, 16];
  const part = (i: number) => (number >> (BigInt(count - 1 - i) * width)) & ((1n << width) - 1n);
  const parts = Array.from({ length: count }, (_, i) => part(i).toString(base));
  return parts.join(family === "ipv4" ? "." : ":");
}

function join(parts: readonly number[], width: bigint): bigint {
  return parts.reduce((sum, part) => (sum << width) + BigInt(part), 0n);
}
