// TCP ports and ranges: read strictly, brought into one canonical order, packed into rules.
import { type Bounds, type NumberWord, readInteger } from "./integer.ts";
import { type Read, trimBlanks, type Unreadable } from "./list.ts";

/** Ports `from` to `to`, both included; 1 to 65535. */
export type PortRange = { readonly from: number; readonly to: number };

/** What is wrong with one entry of a list; the caller knows whose entry it is. */
export class PortError extends RangeError {
  constructor({ problem }: Unreadable) {
    super(problem);
    this.name = "PortError";
  }
}

const bounds: Bounds = { least: 1, most: 65535 };

/** A port number: decimal digits, 1 to 65535. No sign, no hex, no name: iptables would take those and mean something else. */
export function readPort(entry: string): Read<number> | Unreadable {
  const value = readInteger(entry, bounds);
  return value === undefined ? unreadable(entry, notPort) : { value };
}

/** The same. @throws PortError for what is no port. */
export function parsePort(text: string): number {
  return required(readPort(text));
}

/** A port, or a range `from-to`. `0-N` means `1-N`: linkerd takes it, and no packet has port 0. */
export function readPorts(entry: string): Read<PortRange> | Unreadable {
  const dash = entry.indexOf("-");
  if (entry === "" || dash !== entry.lastIndexOf("-")) return unreadable(entry, neither);
  const ends = dash === -1 ? [entry, entry] : [entry.slice(0, dash), entry.slice(dash + 1)];
  const [from, to] = ends.map((end) => readInteger(end, { ...bounds, least: 0 }));
  if (from === undefined || to === undefined || to === 0 || from > to) {
    return unreadable(entry, dash === -1 ? notPort : notRange);
  }
  return { value: { from: Math.max(1, from), to } };
}

/**
 * A comma-separated list of ports and ranges, all or nothing; blanks around entries do not count. An empty entry is an
 * error: it is more often a slip of a template than a wish for nothing.
 * @throws PortError for the first entry that is neither.
 */
export function parsePorts(text: string): PortRange[] {
  return text.split(",").map((entry) => required(readPorts(trimBlanks(entry))));
}

function required<T>(result: Read<T> | Unreadable): T {
  if ("value" in result) return result.value;
  throw new PortError(result);
}

const notPort = "is not a port (1 to 65535)";
const notRange = "is not a range of ports (1-65535, lower end first)";
const neither = "is not a port or a range of ports";

function unreadable(entry: string, problem: string): Unreadable {
  return { problem: `${JSON.stringify(entry)} ${problem}` };
}

/** Sorted, without overlaps, neighbours joined: the same set of ports always gives the same rules. */
export function mergePorts(ranges: readonly PortRange[]): PortRange[] {
  const merged: PortRange[] = [];
  for (const range of ranges.toSorted((a, b) => a.from - b.from || a.to - b.to)) {
    const last = merged.at(-1);
    if (last === undefined || range.from > last.to + 1) merged.push(range);
    else merged[merged.length - 1] = { from: last.from, to: Math.max(last.to, range.to) };
  }
  return merged;
}

/** The ranges as users write them: `443`, `8000-8010`. */
export function portWords(ranges: readonly PortRange[]): NumberWord[] {
  return ranges.map(({ from, to }) => (from === to ? from : `${from}-${to}`));
}

/** What one multiport match can hold (XT_MULTI_PORTS); a range takes two. */
const slotsPerMatch = 15;

/**
 * The ranges as values for multiport's --dports, as few as their order allows.
 * One or two ports are written singly: multiport refuses `80:80`, and `4190,4191` is how linkerd's tools spell a pair.
 */
export function packPorts(ranges: readonly PortRange[]): string[] {
  const packs: { slots: number; words: string[] }[] = [];
  for (const { from, to } of ranges) {
    const words = to - from > 1 ? [`${from}:${to}`] : [...new Set([`${from}`, `${to}`])];
    const slots = from === to ? 1 : 2;
    const last = packs.at(-1);
    if (last === undefined || last.slots + slots > slotsPerMatch) packs.push({ slots, words });
    else packs[packs.length - 1] = { slots: last.slots + slots, words: [...last.words, ...words] };
  }
  return packs.map(({ words }) => words.join(","));
}
