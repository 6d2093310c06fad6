// Reads the matches of a rule as nft prints it in JSON: can it match the traffic that our rules wait for? Pure.

import { type Family, protocolOf, type Traffic } from "../table.ts";
import { field, type Statement, textField } from "./view.ts";

/** Packets of one family. */
export type Flow = { readonly family: Family; readonly traffic: Traffic };

/**
 * False for a rule that matches only what our rules let pass anyway (other protocols, loopback), or only packets of the
 * other family. What is not understood is held to match.
 */
export function couldMatch(statements: readonly Statement[], flow: Flow): boolean {
  return !statements.some(({ word, value }) => word === "match" && excludes(value, flow));
}

function excludes(match: unknown, flow: Flow): boolean {
  const [op, left, right] = ["op", "left", "right"].map((key) => field(match, key));
  // Of several values it is enough that the packet is none of them: only a single one is looked at.
  if (op === "!=") return isProtocol(left) && isAllOf(right, flow);
  if (op !== "==") return false;
  const values = allOf(right);
  const tests = [byMeta(field(left, "meta"), flow), byPayload(field(left, "payload"), flow)];
  return values.length > 0 && tests.some((excluded) => values.every(excluded));
}

type Excluded = (value: unknown) => boolean;

const nothing: Excluded = () => false;
const everything: Excluded = () => true;

/** What `meta KEY` of a packet of ours cannot be. */
function byMeta(meta: unknown, flow: Flow): Excluded {
  const { family, traffic } = flow;
  switch (textField(meta, "key")) {
    case "l4proto":
      return (value) => isWord(value) && !isOneOf(value, flow);
    case "iif":
    case "iifname":
    case "oif":
    case "oifname":
      return (value) => value === "lo" && !traffic.loopback;
    case "nfproto":
      return (value) => value === otherThan(family);
    case "protocol":
      return (value) => value === (family === "ipv4" ? "ip6" : "ip");
    default:
      return nothing;
  }
}

const transports = ["tcp", "udp", "udplite", "icmp", "icmpv6", "igmp", "sctp", "dccp", "esp", "ah"];

/** The same of a header's field. A field of another protocol's header is in no packet of ours at all. */
function byPayload(payload: unknown, flow: Flow): Excluded {
  const { family, traffic } = flow;
  const [protocol, name] = [textField(payload, "protocol"), textField(payload, "field")];
  if (transports.includes(protocol) && !isOneOf(protocol, flow)) return everything;
  if (protocol === (family === "ipv4" ? "ip6" : "ip")) return everything;
  if (protocol !== "ip" && protocol !== "ip6") return nothing;
  if (name === "daddr") return traffic.loopback ? nothing : isLoopback;
  return name === "protocol" || name === "nexthdr"
    ? (value) => isWord(value) && !isOneOf(value, flow)
    : nothing;
}

function isProtocol(left: unknown): boolean {
  const names = ["protocol", "nexthdr"];
  return (
    textField(field(left, "meta"), "key") === "l4proto" ||
    names.includes(textField(field(left, "payload"), "field"))
  );
}

/** The single values of an anonymous set, or the one value. A named set comes as "@name", whatever it holds. */
function allOf(right: unknown): unknown[] {
  const set = field(right, "set");
  return Array.isArray(set) ? set : [right];
}

function isWord(value: unknown): boolean {
  return typeof value === "number" || (typeof value === "string" && !value.startsWith("@"));
}

function isOneOf(value: unknown, { traffic }: Flow): boolean {
  const named = protocolOf(value);
  return named !== undefined && traffic.protocols.includes(named);
}

function isAllOf(value: unknown, { traffic }: Flow): boolean {
  return traffic.protocols.every((name) => name === protocolOf(value));
}

function isLoopback(value: unknown): boolean {
  const prefix = field(value, "prefix");
  const address = typeof value === "string" ? value : textField(prefix, "addr");
  const bits = typeof value === "string" ? 32 : field(prefix, "len");
  if (address === "::1") return prefix === undefined;
  return /^127(?:\.\d+){3}$/.test(address) && typeof bits === "number" && bits >= 8;
}

function otherThan(family: Family): Family {
  return family === "ipv4" ? "ipv6" : "ipv4";
}
