// Can a line of iptables-save hold others? Most of a rule is printed as numbers, as words of the tool's own, or quoted; but
// some names are printed as they are, with any line break in them. A rule of which that is so may be several on paper, and
// what stands behind it in the text may be its doing. Asked by save.ts of each rule of the table that counts.
import type { Rule } from "./rule.ts";

/** Matches that print numbers, the tool's own words, and quoted text. Not: recent, set, hashlimit, physdev, cgroup... */
const plainMatches = new Set(
  [
    "addrtype ah cluster comment connbytes connlabel connlimit connmark conntrack cpu dccp devgroup dscp dst ecn",
    "esp eui64 frag hbh hl icmp icmp6 iprange ipv6header ipvs length limit mac mark mh multiport owner pkttype",
    "policy quota realm rpfilter rt sctp socket state statistic string tcp tcpmss time tos ttl u32 udp udplite",
  ].flatMap((names) => names.split(" ")),
);

/** Targets of the same kind. Not: SET, RATEEST, IDLETIMER... */
const plainTargets = new Set(
  [
    "ACCEPT DROP RETURN QUEUE REDIRECT DNAT SNAT MASQUERADE NETMAP TPROXY REJECT MARK CONNMARK CONNSECMARK LOG NFLOG",
    "ULOG NFQUEUE TRACE AUDIT CT NOTRACK DSCP TOS TTL HL ECN TCPMSS TCPOPTSTRIP CHECKSUM CLASSIFY CLUSTERIP SAME",
  ].flatMap((names) => names.split(" ")),
);

/** CT's options whose value is a name that a process in the netns may have chosen. */
const namingOptions = new Set(["--helper", "--timeout"]);

/** Why others may be hidden in a rule, in a table with these chains; undefined where none can be. */
export function hidingIn(rule: Rule, chains: ReadonlyMap<string, unknown>): string | undefined {
  const odd = rule.matches.find(({ name }) => !plainMatches.has(name))?.name;
  if (odd !== undefined) return `a match that prints names as they are (${odd})`;
  if (endsInInterface(rule)) return "a rule that ends in the name of an interface";
  const { target, targetOptions } = rule;
  const isChain = chains.has(target);
  if (isChain && targetOptions.length > 0) return "a jump with options";
  if (target === "CT" && targetOptions.some((word) => namingOptions.has(word))) {
    return "a target that prints names as they are (CT)";
  }
  if (target === "" || isChain || plainTargets.has(target)) return undefined;
  return `a target that prints names as they are (${target})`;
}

// `-o "a\n-A OUTPUT" -j X` reads `-A OUTPUT -o a`, and `-A OUTPUT -j X`. In the 15 characters of such a name there is no
// room for more than the second rule's beginning.
function endsInInterface({ conditions, matches, verdict }: Rule): boolean {
  const last = conditions.at(-1)?.option;
  return (last === "-i" || last === "-o") && matches.length === 0 && verdict === "";
}
