// Reads the matches of a rule as nft prints it in JSON: can it match TCP that our chains redirect? Pure.

import type { Family } from "../table.ts";
import { field, type Statement, textField } from "./view.ts";

/**
 * False for a rule that matches only what our chains let pass anyway (other protocols, loopback), or only packets of the
 * other family. What is not understood is held to match.
 */
export function couldMatch(statements: readonly Statement[], family: Family): boolean {
  return !statements.some(({ word, value }) => word === "match" && excludes(value, family));
}

function excludes(match: unknown, family: Family): boolean {
  const [op, left, right] = ["op", "left", "right"].map((key) => field(match, key));
  // Of several values it is enough that the packet is none of them: only a single one is looked at.
  if (op === "!=") return isProtocol(left) && isTcp(right);
  if (op !== "==") return false;
  const values = allOf(right);
  const tests = [byMeta(field(left, "meta"), family), byPayload(field(left, "payload"), family)];
  return values.length > 0 && tests.some((excluded) => values.every(excluded));
}

type Excluded = (value: unknown) => boolean;

const nothing: Excluded = () => false;
const everything: Excluded = () => true;

/** What `meta KEY` of a packet cannot be when it is redirected. */
function byMeta(meta: unknown, family: Family): Excluded {
  switch (textField(meta, "key")) {
    case "l4proto":
      return (value) => isWord(value) && !isTcp(value);
    case "iif":
    case "iifname":
    case "oif":
    case "oifname":
      return (value) => value === "lo";
    case "nfproto":
      return (value) => value === otherThan(family);
    case "protocol":
      return (value) => value === (family === "ipv4" ? "ip6" : "ip");
    default:
      return nothing;
  }
}

const otherProtocols = ["udp", "udplite", "icmp", "icmpv6", "igmp", "sctp", "dccp", "esp", "ah"];

/** The same of a header's field. A field of another protocol's header is in no TCP packet at all. */
function byPayload(payload: unknown, family: Family): Excluded {
  const [protocol, name] = [textField(payload, "protocol"), textField(payload, "field")];
  if (otherProtocols.includes(protocol)) return everything;
  if (protocol === (family === "ipv4" ? "ip6" : "ip")) return everything;
  if (protocol !== "ip" && protocol !== "ip6") return nothing;
  if (name === "daddr") return isLoopback;
  return name === "protocol" || name === "nexthdr"
    ? (value) => isWord(value) && !isTcp(value)
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

function isTcp(value: unknown): boolean {
  return value === "tcp" || value === 6;
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
