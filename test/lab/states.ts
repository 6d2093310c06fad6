// The states that ADD, CHECK and repair may find a pod's netns in, as iptables-save texts. All are about one conf
// (`linkerd` below), and name no address, so that either family and either backend can be brought into them.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Backend, Family } from "../../src/netfilter/table.ts";
import type { LabNetns } from "./netns.ts";

/** The conf that the states are about: the one that linkerd-init's saved rules were made from. */
export const linkerd = {
  "incoming-proxy-port": 4143,
  "outgoing-proxy-port": 4140,
  "proxy-uid": 2102,
  "inbound-ports-to-ignore": ["4190", "4191", "4567", "4568"],
  "outbound-ports-to-ignore": ["4567", "4568"],
  ipv6: true,
} as const;

export const inboundJump = `-A PREROUTING -m comment --comment "sluice/inbound" -j PROXY_INIT_REDIRECT`;
export const outboundJump = `-A OUTPUT -m comment --comment "sluice/outbound" -j PROXY_INIT_OUTPUT`;

const proxyUid = `-A PROXY_INIT_OUTPUT -m owner --uid-owner 2102 -m comment --comment "sluice/proxy-uid" -j RETURN`;
const loopback = `-A PROXY_INIT_OUTPUT -o lo -m comment --comment "sluice/loopback" -j RETURN`;
const excludeOutbound = `-A PROXY_INIT_OUTPUT -p tcp -m multiport --dports 4567,4568 -m comment --comment "sluice/exclude-port" -j RETURN`;
const redirectOutbound = `-A PROXY_INIT_OUTPUT -p tcp -m comment --comment "sluice/redirect-outbound" -j REDIRECT --to-ports 4140`;
const excludeInbound = `-A PROXY_INIT_REDIRECT -p tcp -m multiport --dports 4190,4191,4567,4568 -m comment --comment "sluice/exclude-port" -j RETURN`;
const redirectInbound = `-A PROXY_INIT_REDIRECT -p tcp -m comment --comment "sluice/redirect-inbound" -j REDIRECT --to-ports 4143`;

/** The rules of our chains, by what they are for. */
export const rule = {
  proxyUid,
  loopback,
  excludeOutbound,
  redirectOutbound,
  excludeInbound,
  redirectInbound,
} as const;

const chains = [":PROXY_INIT_OUTPUT - [0:0]", ":PROXY_INIT_REDIRECT - [0:0]"];
const outboundRules = [proxyUid, loopback, excludeOutbound, redirectOutbound];
const inboundRules = [excludeInbound, redirectInbound];
const rules = [...outboundRules, ...inboundRules];

/** What is ours in a netns that is as it should be, in the order of iptables-save. */
export const complete: readonly string[] = [
  ...chains,
  inboundJump,
  outboundJump,
  ...outboundRules,
  ...inboundRules,
];

// Rules of others. Their counters stand for traffic that they have seen: who writes them anew loses it.
const dnsJump = "[7:420] -A OUTPUT -p udp -m udp --dport 53 -j FOREIGN_DNS";
const foreignChains = [
  ":FOREIGN_DNS - [0:0]",
  ":PROXY_INIT_OTHER - [0:0]",
  ":ZZ_FOREIGN - [0:0]",
  "[5:300] -A FOREIGN_DNS -p udp -m mark --mark 0x7 -j REDIRECT --to-ports 5353",
  '[4:240] -A PROXY_INIT_OTHER -m comment --comment "not \\"ours\\", whatever the name" -j RETURN',
  "[3:180] -A ZZ_FOREIGN -p tcp -m tcp --dport 9 -j PROXY_INIT_OTHER",
];
const foreignTables = [
  "*filter",
  ":INPUT ACCEPT [0:0]",
  ":FORWARD DROP [3:4]",
  ":OUTPUT ACCEPT [0:0]",
  ":PROXY_INIT_OUTPUT - [0:0]",
  "[9:540] -A INPUT -p tcp -m tcp --dport 9 -j DROP",
  "[8:480] -A OUTPUT -p udp -m udp --dport 9 -j PROXY_INIT_OUTPUT",
  "COMMIT",
  "*mangle",
  ":PREROUTING ACCEPT [0:0]",
  ":INPUT ACCEPT [0:0]",
  ":FORWARD ACCEPT [0:0]",
  ":OUTPUT ACCEPT [0:0]",
  ":POSTROUTING ACCEPT [0:0]",
  ":KUBE-KUBELET-CANARY - [0:0]",
  "[6:360] -A OUTPUT -p tcp -m tcp --dport 9 -j MARK --set-xmark 0x1/0xffffffff",
  "COMMIT",
];

const shadow = "[2:120] -A OUTPUT -p tcp -j ACCEPT";

/** One text a state; "" is a netns that has no table yet. */
export const states = {
  "nothing in it": "",
  "its rules flushed": nat(),
  "all in order": nat(...complete),
  "linkerd-init's rules, interrupted": fixture("linkerd-init-interrupted.save"),
  "linkerd-init's rules, complete": fixture("linkerd-init-complete.save"),
  "the outbound jump doubled": nat(...complete, outboundJump),
  "the inbound jump doubled": nat(...complete, inboundJump),
  "a stamped jump beside ours": nat(...complete, stamped(outboundJump)),
  "the outbound jump missing": nat(...chains, inboundJump, ...rules),
  "the inbound jump missing": nat(...chains, outboundJump, ...rules),
  "a jump for TCP only": nat(
    ...chains,
    inboundJump,
    outboundJump.replace("-A OUTPUT", "-A OUTPUT -p tcp"),
    ...rules,
  ),
  "a goto in place of a jump": nat(
    ...chains,
    inboundJump.replace("-j PROXY", "-g PROXY"),
    outboundJump,
    ...rules,
  ),
  "a rule missing": nat(...without(proxyUid)),
  "an extra rule": nat(...complete, "-A PROXY_INIT_OUTPUT -p tcp -m tcp --dport 443 -j RETURN"),
  "a rule doubled": nat(...complete, redirectInbound),
  "the proxy's exemption behind the redirect": nat(...without(proxyUid), proxyUid),
  "a rule changed": nat(
    ...without(redirectInbound),
    redirectInbound.replace("--to-ports 4143", "--to-ports 4999"),
  ),
  "one of our chains missing": nat(
    ":PROXY_INIT_REDIRECT - [0:0]",
    inboundJump,
    excludeInbound,
    redirectInbound,
  ),
  "chains empty": nat(...chains, inboundJump, outboundJump),
  "chains without jumps": nat(...chains, ...rules),
  "chains empty and without jumps": nat(...chains),
  "one chain jumped to, the other filled": nat(
    ...chains,
    inboundJump,
    proxyUid,
    loopback,
    excludeOutbound,
    redirectOutbound,
  ),
  "foreign rules around ours": nat(
    ...chains,
    ...foreignChains,
    "[1:60] -A PREROUTING -p udp -m udp --dport 53 -j FOREIGN_DNS",
    dnsJump,
    ...complete.slice(chains.length),
    "[2:120] -A PREROUTING -p tcp -m tcp --dport 9 -j ZZ_FOREIGN",
    "[1:60] -A OUTPUT -p tcp -m tcp --dport 9 -j ACCEPT",
    "[1:60] -A POSTROUTING -p udp -m udp --dport 9 -j MASQUERADE",
  ).concat(text(foreignTables)),
  "foreign rules between doubled jumps": nat(
    ...chains,
    ...foreignChains,
    outboundJump,
    dnsJump,
    outboundJump,
    inboundJump,
    "[2:120] -A PREROUTING -p udp -m udp --dport 9 -j ZZ_FOREIGN",
    inboundJump,
    ...rules,
  ).concat(text(foreignTables)),
  "foreign rules only": nat(...foreignChains, dnsJump).concat(text(foreignTables)),
  "a foreign chain that jumps to ours": nat(
    ...complete,
    ":FOREIGN - [0:0]",
    "[5:300] -A FOREIGN -j PROXY_INIT_REDIRECT",
  ),
  "a foreign rule that takes the traffic ahead of the jump": nat(
    ...chains,
    inboundJump,
    shadow,
    outboundJump,
    ...rules,
  ),
  "a foreign chain that takes the traffic ahead of the jump": nat(
    ...chains,
    ":FOREIGN - [0:0]",
    "[3:180] -A PREROUTING -j FOREIGN",
    inboundJump,
    outboundJump,
    "[2:120] -A FOREIGN -p tcp -m tcp --dport 8080 -j ACCEPT",
    ...rules,
  ),
} as const satisfies Record<string, string>;

export type StateName = keyof typeof states;
export const stateNames: readonly StateName[] = Object.keys(states).filter(
  (name): name is StateName => name in states,
);

/** One family of a netns, as one backend keeps it. */
export type Place = {
  readonly netns: LabNetns;
  readonly backend: Backend;
  readonly family: Family;
};

/** Brings a place into a state, whatever was in the tables that the state names. */
export function loadState(place: Place, name: StateName): void {
  if (states[name] !== "") restore(place, states[name]);
}

/** Loads a restore text; without --noflush it replaces the tables that it names. */
export function restore(place: Place, input: string, ...flags: readonly string[]): void {
  place.netns.run(`${toolOf(place)}-restore`, ["--counters", ...flags], input);
}

/** All tables of a place as iptables-save prints them, with counters; "" where the backend has none. */
export function save(place: Place): string {
  return place.netns.run(`${toolOf(place)}-save`, ["--counters"]);
}

/** What iptables-save shows of our chains and of the jumps to them, without counters. */
export function ownLines(saved: string): string[] {
  return natLines(saved)
    .filter(isOwn)
    .map((line) => line.replace(counters, "").replace(/\[\d+:\d+\]$/, "[0:0]"));
}

/** What iptables-save shows of all else, each line with its table and its counters. */
export function foreignLines(saved: string): string[] {
  return linesOf(saved).flatMap(({ table, line }) =>
    table === "nat" && (isOwn(line) || isUntouchedBuiltin(line)) ? [] : [`${table}: ${line}`],
  );
}

/** The nat table's own lines of a save. */
export function natLines(saved: string): string[] {
  return linesOf(saved).flatMap(({ table, line }) => (table === "nat" ? [line] : []));
}

const counters = /^\[\d+:\d+\] /;
const builtin = /^-A (?:PREROUTING|INPUT|OUTPUT|POSTROUTING) /;

function isOwn(line: string): boolean {
  const plain = line.replace(counters, "");
  if (/^(?::|-A )PROXY_INIT_(?:REDIRECT|OUTPUT) /.test(plain)) return true;
  return builtin.test(plain) && / -[jg] PROXY_INIT_(?:REDIRECT|OUTPUT)$/.test(plain);
}

// A table that is made for our rules brings the builtin chains along.
function isUntouchedBuiltin(line: string): boolean {
  return /^:[A-Z]+ ACCEPT \[0:0\]$/.test(line);
}

function linesOf(saved: string): { table: string; line: string }[] {
  let table = "";
  return saved.split("\n").flatMap((line) => {
    if (line.startsWith("*")) table = line.slice(1);
    return /^(?:[:[]|-A)/.test(line) ? [{ table, line }] : [];
  });
}

function toolOf({ backend, family }: Place): string {
  return `${family === "ipv4" ? "iptables" : "ip6tables"}-${backend}`;
}

function nat(...lines: readonly string[]): string {
  const declared = lines.filter((line) => line.startsWith(":"));
  const others = lines.filter((line) => !line.startsWith(":"));
  const builtins = ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"];
  const hooks = builtins.map((name) => `:${name} ACCEPT [0:0]`);
  return text(["*nat", ...hooks, ...declared, ...others, "COMMIT"]);
}

function text(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join("");
}

function without(line: string): string[] {
  return complete.filter((other) => other !== line);
}

function stamped(line: string): string {
  return line.replace(/"[^"]+"/, '"proxy-init/install-proxy-init-output/1574720803"');
}

function fixture(name: string): string {
  return readFileSync(join(import.meta.dirname, "../fixture", name), "utf8");
}
