// Durations as Go writes and reads them ("1h30m", "1.5s", "0"): what Linkerd's injector takes for the close-wait timeout.

/** The kernel counts the setting in jiffies, of which it holds no more than these seconds' worth. */
const mostSeconds = 2_147_483;

/** No duration that is meant is longer in writing. */
const longestText = 64;

const nanoseconds: ReadonlyMap<string, bigint> = new Map([
  ["ns", 1n],
  ["us", 1_000n],
  ["µs", 1_000n],
  ["μs", 1_000n],
  ["ms", 1_000_000n],
  ["s", 1_000_000_000n],
  ["m", 60_000_000_000n],
  ["h", 3_600_000_000_000n],
]);

/**
 * The whole seconds of a duration, as the injector counts them: 0, which says that nothing is set, for less than one.
 * Undefined for what is no duration, is negative, or more than the kernel takes.
 */
export function readSeconds(text: string): number | undefined {
  if (text.length > longestText) return undefined;
  const [, sign, spans = ""] = /^([+-]?)(.*)$/s.exec(text) ?? [];
  const total = spans === "0" ? 0n : readSpans(spans);
  if (total === undefined || (sign === "-" && total > 0n)) return undefined;
  const seconds = Number(total / 1_000_000_000n);
  return seconds <= mostSeconds ? seconds : undefined;
}

function readSpans(text: string): bigint | undefined {
  if (text === "") return undefined;
  const part = /([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)/y;
  let total = 0n;
  while (part.lastIndex < text.length) {
    const [, whole = "", fraction = "", unit = ""] = part.exec(text) ?? [];
    const span = whole + fraction === "" ? undefined : nanoseconds.get(unit);
    if (span === undefined) return undefined;
    const scale = 10n ** BigInt(fraction.length);
    total += (BigInt(whole + fraction) * span) / scale;
  }
  return total;
}
