// Subnets: read strictly (never by a resolver, never in octal) and written as iptables-save prints them.
import type { Family } from "../netfilter/table.ts";
import { type Read, trimBlanks, type Unreadable } from "./list.ts";

/** A subnet in canonical text: host bits cleared, IPv6 compressed, prefix always there. */
export type Cidr = { readonly family: Family; readonly text: string };

/** What is wrong with one subnet; the caller knows whose it is. */
export class CidrError extends RangeError {
  constructor({ problem }: Unreadable) {
    super(problem);
    this.name = "CidrError";
  }
}

/**
 * A subnet `address/prefix`; blanks around it do not count. An address alone is a subnet of its own, and bits behind the
 * prefix are cleared. Unreadable is anything else: a name, `10.1`, `010.0.0.1` (iptables would read 8.0.0.1).
 */
export function readCidr(entry: string): Read<Cidr> | Unreadable {
  const text = trimBlanks(entry);
  const [address = "", prefix, ...more] = text.split("/");
  const family = familyOf(address);
  const bytes = bytesOf(family, address);
  const bits = prefix === undefined ? (bytes?.length ?? 0) * 8 : bitsOf(prefix);
  if (bytes === undefined || more.length > 0 || !(bits <= bytes.length * 8)) {
    return { problem: `${JSON.stringify(text)} is not a subnet (like 10.0.0.0/8 or fd00::/8)` };
  }
  const masked = mask(bytes, bits);
  const value = { family, text: `${addressText(family, masked)}/${bits}` };
  const isAsWritten = prefix !== undefined && bytes.every((byte, at) => byte === masked[at]);
  return isAsWritten
    ? { value }
    : { value, note: `${JSON.stringify(text)} is read as ${value.text}` };
}

/**
 * The same as readCidr, without its notes.
 * @throws CidrError for what is no subnet.
 */
export function parseCidr(entry: string): Cidr {
  const result = readCidr(entry);
  if ("value" in result) return result.value;
  throw new CidrError(result);
}

/** The family of an address with or without prefix length, as a CNI result has it. */
export function familyOf(address: string): Family {
  return address.includes(":") ? "ipv6" : "ipv4";
}

/** One of each, in an order that does not depend on how they were written. */
export function mergeCidrs(cidrs: readonly Cidr[]): Cidr[] {
  const byKey = new Map(cidrs.map((cidr) => [sortKey(cidr), cidr]));
  return [...byKey].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, cidr]) => cidr);
}

function sortKey({ family, text }: Cidr): string {
  const [address = "", prefix = ""] = text.split("/");
  const bytes = bytesOf(family, address) ?? [];
  return [
    family,
    ...bytes.map((byte) => byte.toString(16).padStart(2, "0")),
    prefix.padStart(3, "0"),
  ].join();
}

function bytesOf(family: Family, address: string): number[] | undefined {
  return family === "ipv6" ? ipv6Bytes(address) : ipv4Bytes(address);
}

function addressText(family: Family, bytes: readonly number[]): string {
  return family === "ipv6" ? ipv6Text(bytes) : bytes.join(".");
}

function bitsOf(prefix: string): number {
  return /^(0|[1-9][0-9]{0,2})$/.test(prefix) ? Number(prefix) : Number.NaN;
}

function ipv4Bytes(address: string): number[] | undefined {
  const parts = address.split(".");
  const good = parts.length === 4 && parts.every((part) => /^(0|[1-9][0-9]{0,2})$/.test(part));
  const bytes = parts.map(Number);
  return good && bytes.every((byte) => byte <= 255) ? bytes : undefined;
}

// One "::" at most; what stands around it is groups of 1 to 4 hex digits. The last of all may be an IPv4 address.
function ipv6Bytes(address: string): number[] | undefined {
  const [head = "", tail, ...more] = address.split("::");
  if (more.length > 0) return undefined;
  const before = tail === undefined ? lastBytes(head) : groupBytes(head);
  const after = lastBytes(tail ?? "");
  if (before === undefined || after === undefined) return undefined;
  const gap = 16 - before.length - after.length;
  const fits = tail === undefined ? gap === 0 : gap >= 2;
  return fits ? [...before, ...new Array<number>(gap).fill(0), ...after] : undefined;
}

// The end of an address: its last group may be an IPv4 address.
function lastBytes(text: string): number[] | undefined {
  const at = text.lastIndexOf(":") + 1;
  const embedded = ipv4Bytes(text.slice(at));
  if (embedded === undefined) return groupBytes(text);
  // With a colon ahead of it and nothing ahead of that, it would follow a group that is not there.
  if (at === 1) return undefined;
  const before = groupBytes(text.slice(0, Math.max(0, at - 1)));
  return before === undefined ? undefined : [...before, ...embedded];
}

function groupBytes(text: string): number[] | undefined {
  if (text === "") return [];
  const bytes = text.split(":").map((group) => {
    if (!/^[0-9a-fA-F]{1,4}$/.test(group)) return undefined;
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 255];
  });
  return bytes.every((group) => group !== undefined) ? bytes.flat() : undefined;
}

function mask(bytes: readonly number[], bits: number): number[] {
  return bytes.map((byte, at) => {
    const kept = Math.min(8, Math.max(0, bits - at * 8));
    return byte & ((0xff << (8 - kept)) & 0xff);
  });
}

// RFC 5952: the first longest run of two or more zero groups becomes "::". As glibc's inet_ntop (and so iptables-save)
// does, an IPv4-mapped or -compatible address ends in dotted quads.
function ipv6Text(bytes: readonly number[]): string {
  const groups = Array.from(
    { length: 8 },
    (_, i) => (bytes[2 * i] ?? 0) * 256 + (bytes[2 * i + 1] ?? 0),
  );
  const { start, length } = longestZeroRun(groups);
  const mapped = length === 5 && groups[5] === 0xffff;
  if (start === 0 && length === 6) return `::${bytes.slice(12).join(".")}`;
  if (start === 0 && mapped) return `::ffff:${bytes.slice(12).join(".")}`;
  const hex = (some: readonly number[]) => some.map((group) => group.toString(16)).join(":");
  if (length < 2) return hex(groups);
  return `${hex(groups.slice(0, start))}::${hex(groups.slice(start + length))}`;
}

function longestZeroRun(groups: readonly number[]): { start: number; length: number } {
  let best = { start: 0, length: 0 };
  for (let start = 0; start < 8; start++) {
    let length = 0;
    while (groups[start + length] === 0) length++;
    if (length > best.length) best = { start, length };
  }
  return best;
}
