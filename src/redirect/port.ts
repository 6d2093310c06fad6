// TCP ports and ranges: read strictly, brought into one canonical order, packed into rules.

/** Ports `from` to `to`, both included; 1 to 65535. */
export type PortRange = { readonly from: number; readonly to: number };

/** What is wrong with one entry of a list; the caller knows whose entry it is. */
export class PortError extends RangeError {
  constructor(entry: string, problem: string) {
    super(`${JSON.stringify(entry)} ${problem}`);
    this.name = "PortError";
  }
}

/** A port number: decimal digits, 1 to 65535. No sign, no hex, no name: iptables would take those and mean something else. */
export function parsePort(text: string): number {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (port >= 1 && port <= 65535) return port;
  throw new PortError(text, "is not a port (1 to 65535)");
}

/**
 * A comma-separated list of ports and `from-to` ranges; blanks around entries do not count.
 * `0-N` means `1-N`: linkerd takes it, and no packet has port 0. An empty entry is an error: it is more often a slip
 * of a template than a wish for nothing.
 * @throws PortError for the first entry that is neither.
 */
export function parsePorts(text: string): PortRange[] {
  return text
    .split(",")
    .map((entry) => parseEntry(entry.replaceAll(/^[ \t\r\n]+|[ \t\r\n]+$/g, "")));
}

function parseEntry(entry: string): PortRange {
  const [first = "", last, ...more] = entry.split("-");
  if (more.length > 0 || entry === "")
    throw new PortError(entry, "is not a port or a range of ports");
  if (last === undefined) {
    const port = parsePort(first);
    return { from: port, to: port };
  }
  try {
    const range = { from: first === "0" ? 1 : parsePort(first), to: parsePort(last) };
    if (range.from <= range.to) return range;
  } catch {
    // The half that is no port says less than the whole entry: reported below.
  }
  throw new PortError(entry, "is not a range of ports (1-65535, lower end first)");
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
