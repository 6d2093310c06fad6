// Spells the rules: the only file that does. Pure: an intent and a family give one ruleset, in the words and the order
// that iptables-save prints (facts of iptables 1.8 on both backends), so that reading back is comparing text.
//
//   PREROUTING -> PROXY_INIT_REDIRECT: excluded ports, excluded sources, then to the proxy's inbound port
//   OUTPUT     -> PROXY_INIT_OUTPUT:   the proxy itself, loopback, excluded ports, then to its outbound port
//
// Values in a rule are integers and canonical subnets only; comments are constants. Nothing a user wrote gets here.
import type { Family, OwnChain, Ruleset, RuleText, Traffic } from "../../netfilter/table.ts";
import { type PortRange, packPorts } from "../../redirect/port.ts";
import type { Intent } from "./intent.ts";
import { inboundChain, linkerdJumps, outboundChain } from "./names.ts";

// All traffic, not only TCP, as linkerd's own jumps: the chains' rules choose.
const inboundJump = `-A PREROUTING ${comment("inbound")} -j ${inboundChain}`;
const outboundJump = `-A OUTPUT ${comment("outbound")} -j ${outboundChain}`;

/** The proxy takes TCP that leaves the pod or comes from outside; containers of a pod talk to each other over lo. */
export const traffic: Traffic = { protocols: ["tcp"], loopback: false };

/** The desired rules of one family: all of them stand in nat. */
export function buildRuleset(intent: Intent, family: Family): Ruleset {
  const nat = {
    name: "nat",
    chains: [inbound(intent, family), outbound(intent)],
    placed: [
      { hook: "PREROUTING", rule: inboundJump },
      { hook: "OUTPUT", rule: outboundJump },
    ],
    // Linkerd's own tools use the same chains: where these go, so do their jumps.
    aliases: linkerdJumps,
  } as const;
  return { family, tables: [nat], traffic };
}

/** The desired rules of these families. */
export function buildRulesets(intent: Intent, families: readonly Family[]): Ruleset[] {
  return families.map((family) => buildRuleset(intent, family));
}

function inbound(intent: Intent, family: Family): OwnChain {
  const subnets = intent.excludeSubnets.filter((subnet) => subnet.family === family);
  return {
    name: inboundChain,
    rules: [
      // The proxy's admin and control ports, and what users exclude, reach their listener directly. Without: metrics
      // and tap are asked of the proxy as if they were the application's (linkerd2#13976).
      ...excludePorts(inboundChain, intent.excludeInbound),
      // Sources that speak for themselves, like a Docker bridge inside the pod (linkerd2#6758). All protocols.
      ...subnets.map(({ text }) => excludeSource(text)),
      // What is left goes to the proxy. Without: the mesh's policy and mTLS are passed by.
      ...redirectInbound(intent),
    ],
  };
}

function redirectInbound({ onlyInbound, inboundPort }: Intent): RuleText[] {
  const target = `-j REDIRECT --to-ports ${inboundPort}`;
  if (onlyInbound.length === 0) {
    return [`-A ${inboundChain} -p tcp ${comment("redirect-inbound")} ${target}`];
  }
  return onlyInbound.map(
    (port) =>
      `-A ${inboundChain} -p tcp -m tcp --dport ${port} ${comment("redirect-port")} ${target}`,
  );
}

// A subnet of all addresses is printed without -s.
function excludeSource(subnet: string): RuleText {
  const source = subnet.endsWith("/0") ? "" : `-s ${subnet} `;
  return `-A ${inboundChain} ${source}${comment("exclude-subnet")} -j RETURN`;
}

function outbound(intent: Intent): OwnChain {
  const { proxyUid, proxyGid, outboundPort } = intent;
  const own = `-A ${outboundChain}`;
  return {
    name: outboundChain,
    rules: [
      // The proxy's own connections leave the pod. First of all: without, or behind the redirect, they come back to
      // the proxy for ever.
      `${own} -m owner --uid-owner ${proxyUid} ${comment("proxy-uid")} -j RETURN`,
      ...(proxyGid === undefined
        ? []
        : [`${own} -m owner --gid-owner ${proxyGid} ${comment("proxy-gid")} -j RETURN`]),
      // Containers of a pod talk to each other, and to the proxy, over lo. Without: so would they to the proxy.
      `${own} -o lo ${comment("loopback")} -j RETURN`,
      // Ports that users exclude, e.g. of databases that speak first.
      ...excludePorts(outboundChain, intent.excludeOutbound),
      // What is left goes to the proxy. Without (seed of this project): servers answer 403 to unmeshed calls.
      `${own} -p tcp ${comment("redirect-outbound")} -j REDIRECT --to-ports ${outboundPort}`,
    ],
  };
}

function excludePorts(chain: string, ranges: readonly PortRange[]): RuleText[] {
  return packPorts(ranges).map(
    (ports) =>
      `-A ${chain} -p tcp -m multiport --dports ${ports} ${comment("exclude-port")} -j RETURN`,
  );
}

// Constants: a stamp or a list in a comment makes equal rules look different (linkerd2-proxy-init#4), and user text in
// one could end the line and begin a rule.
function comment(text: string): string {
  return `-m comment --comment "sluice/${text}"`;
}
