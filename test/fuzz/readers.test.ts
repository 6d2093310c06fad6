// Whatever the text: a reader ends, with a value or with an error that it declares, and a text of twice the length takes it
// no more than about twice as long.
import fc from "fast-check";
import { expect, test } from "vitest";
import { anyText, plainlyPumped, pump, pumped } from "./arbitrary/text.ts";
import { holds, timeoutMs } from "./budget.ts";
import { type Reader, readers } from "./readers.ts";

const rows = readers.map((reader) => [reader.name, reader] as const);
const part = 0.15 / rows.length;

test.each(rows)("%s: no error but those declared", { timeout: timeoutMs }, async (_, reader) => {
  await holds(
    fc.property(anyText, (text) => {
      expect(undeclared(reader, text)).toBe(undefined);
    }),
    { part },
  );
});

test.each(rows)("%s: time grows as the text does", { timeout: timeoutMs }, async (_, reader) => {
  await holds(
    fc.property(pumped, (text) => {
      const long = lengths.find((length) => cpuMs(reader, pump(text, length)) > slowMs);
      // Once more: what the machine did beside us happens once.
      const again = long !== undefined && cpuMs(reader, pump(text, long)) > slowMs;
      expect(again ? `slow at ${long} characters` : "").toBe("");
    }),
    { part, first: plainlyPumped.map((text) => [text]) },
  );
});

/** Each some times the one before: what grows faster than its text is found before it is too slow to wait for. */
const lengths = [2, 8, 32].map((kibi) => kibi * 1_024);

/** A linear reader takes a few milliseconds for the longest of these; a quadratic one, seconds. */
const slowMs = 250;

// The processor's time, not the clock's: on a busy machine these are not the same.
function cpuMs(reader: Reader, text: string): number {
  const before = process.cpuUsage();
  undeclared(reader, text);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

function undeclared({ read, declares }: Reader, text: string): unknown {
  try {
    read(text);
    return undefined;
  } catch (error) {
    return declares(error) ? undefined : error;
  }
}
