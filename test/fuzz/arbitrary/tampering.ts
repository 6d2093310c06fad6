// What a pod with NET_ADMIN, or another program in its netns, may do to the tables: as commands of the real tools, in both
// backends and families. Most are odd; some are what people really write.
import fc from "fast-check";
import { type Backend, backends, type Family, families } from "../../../src/netfilter/table.ts";
import { anyText } from "./text.ts";

/** One command: a program and its arguments. It may be refused, then it does nothing. */
export type Command = readonly string[];

const builtins = ["OUTPUT", "OUTPUT", "PREROUTING", "PREROUTING", "INPUT", "POSTROUTING"] as const;
const own = ["PROXY_INIT_OUTPUT", "PROXY_INIT_REDIRECT"] as const;

/** Chains of others; some are spelt like a target, some are hard to read in a save. */
const foreign = [
  "FOREIGN",
  "DOCKER_OUTPUT",
  "ULOG",
  "MARK",
  'q"x',
  "a\u00a0b",
  "PROXY_INIT_OUTPUT2",
] as const;

const anyChain = fc.constantFrom(...builtins, ...own, ...foreign);

const comment = fc.oneof(
  anyText.map((text) => text.replaceAll(/\0|\p{Surrogate}/gu, "").slice(0, 80)),
  fc.constantFrom(
    "x\n-A OUTPUT -j ACCEPT",
    "x\nCOMMIT\n*filter\n:INPUT ACCEPT [0:0]\nCOMMIT",
    "x\n:PROXY_INIT_OUTPUT - [0:0]",
    "x\n-A OUTPUT --modprobe=/x -V -j PROXY_INIT_OUTPUT\n-A ZZ ",
    '" -j ACCEPT',
    "sluice/outbound",
  ),
);

const match: fc.Arbitrary<Command> = fc.oneof(
  fc.constantFrom<Command>(
    ["-p", "tcp"],
    ["-p", "udp"],
    ["!", "-p", "udp"],
    ["!", "-p", "tcp"],
    ["-p", "tcp", "--dport", "8080"],
    ["-p", "tcp", "!", "--dport", "8080"],
    ["-p", "tcp", "-m", "multiport", "--dports", "1:65535"],
    ["-o", "lo"],
    ["!", "-o", "lo"],
    ["!", "-i", "lo"],
    ["-d", "127.0.0.11/32"],
    ["!", "-d", "127.0.0.0/8"],
    ["-s", "10.9.0.0/24"],
    ["-m", "string", "--algo", "bm", "!", "--string", "-p"],
    ["-m", "string", "--algo", "bm", "!", "--string", "-o lo"],
    ["-m", "recent", "--set", "--name", "-p"],
    ["-m", "owner", "--uid-owner", "0"],
    ["-m", "owner", "!", "--uid-owner", "5"],
    ["-m", "mark", "!", "--mark", "0x5"],
    ["-m", "addrtype", "!", "--dst-type", "LOCAL"],
    ["-m", "statistic", "--mode", "nth", "--every", "1"],
    ["-m", "conntrack", "--ctstate", "NEW"],
    ["-m", "tcp", "-p", "tcp", "--syn"],
  ),
  comment.map((text): Command => ["-m", "comment", "--comment", text]),
);

const target: fc.Arbitrary<Command> = fc.oneof(
  fc.constantFrom<Command>(
    ["-j", "ACCEPT"],
    ["-j", "RETURN"],
    ["-j", "REDIRECT", "--to-ports", "15001"],
    ["-j", "DNAT", "--to-destination", ":15001"],
    ["-j", "LOG"],
    ["-j", "MARK", "--set-mark", "1"],
    ["-j", "CONNMARK", "--save-mark"],
    [],
  ),
  fc
    .tuple(fc.constantFrom("-j", "-g"), fc.constantFrom(...foreign, ...own))
    .map(([how, chain]): Command => [how, chain]),
);

const place: fc.Arbitrary<Command> = fc.oneof(
  anyChain.map((chain): Command => ["-A", chain]),
  anyChain.map((chain): Command => ["-I", chain]),
);

const rule: fc.Arbitrary<Command> = fc
  .tuple(place, fc.array(match, { maxLength: 2 }), target)
  .map(([where, matches, end]) => [...where, ...matches.flat(), ...end]);

const damage: fc.Arbitrary<Command> = fc.constantFrom<Command>(
  ["-F", "OUTPUT"],
  ["-F", "PREROUTING"],
  ["-F", "PROXY_INIT_OUTPUT"],
  ["-D", "PROXY_INIT_OUTPUT", "1"],
  ["-D", "PROXY_INIT_REDIRECT", "1"],
  ["-D", "OUTPUT", "1"],
  ["-I", "PROXY_INIT_OUTPUT", "-j", "RETURN"],
  ["-E", "PROXY_INIT_OUTPUT", "OLD"],
  ["-P", "OUTPUT", "ACCEPT"],
);

function tool(backend: Backend, family: Family): string {
  return `${family === "ipv4" ? "iptables" : "ip6tables"}-${backend}`;
}

const program = fc
  .tuple(fc.constantFrom(...backends), fc.constantFrom(...families))
  .map(([backend, family]): Command => [tool(backend, family), "-w", "-t", "nat"]);

const withIptables: fc.Arbitrary<readonly Command[]> = fc
  .tuple(program, fc.oneof({ weight: 5, arbitrary: rule }, { weight: 1, arbitrary: damage }))
  .map(([words, change]) => [
    // The chains that the rule may name; those that are there are refused.
    ...foreign.filter((chain) => change.includes(chain)).map((chain) => [...words, "-N", chain]),
    [...words, ...change],
  ]);

const nftFamily = fc.constantFrom("ip", "ip6");

/** Base chains and rules of nft's own. */
const withNft: fc.Arbitrary<readonly Command[]> = fc
  .record({
    family: nftFamily,
    table: fc.constantFrom("nat", "x"),
    hook: fc.constantFrom("output", "prerouting"),
    priority: fc.constantFrom("-110", "-100", "-99", "0"),
    statement: fc.constantFrom(
      "tcp dport 8080 redirect to :15001",
      "meta l4proto tcp accept",
      "counter",
      "udp dport 53 accept",
    ),
  })
  .map(({ family, table, hook, priority, statement }) => [
    ["nft", "add", "table", family, table],
    ["nft", `add chain ${family} ${table} own { type nat hook ${hook} priority ${priority}; }`],
    ["nft", `add rule ${family} ${table} own ${statement}`],
  ]);

/** Some of it, one command after another. */
export const tampering: fc.Arbitrary<readonly Command[]> = fc
  .array(fc.oneof({ weight: 6, arbitrary: withIptables }, { weight: 1, arbitrary: withNft }), {
    maxLength: 5,
  })
  .map((commands) => commands.flat());
