// Text as nobody should write it: what the programs around us print and read, in pieces, repeated, cut, and beside noise.
import fc from "fast-check";

/** Pieces that some reader takes for its own. */
const pieces = [
  ..." \t\n\r\0,;:=-+/.\\\"'`$|&%@!?*#~^_<>()[]{}",
  ..."0123456789abcdefxXeEnN",
  "\u00a0",
  "\u2028",
  "\ud800",
  "\u202e",
  "\u0668",
  "::",
  "..",
  "../",
  "\\\\",
  '\\"',
  "--",
  "1-2",
  "65535",
  "65536",
  "00",
  "1e3",
  "-0",
  "10.0.0.0/8",
  "fd00::/8",
  "127.0.0.1",
  "eyJ",
  "bearer ",
  '"token":"',
  "-A ",
  "-j ",
  "-p ",
  "! ",
  "-m comment --comment ",
  "\n-A OUTPUT -j ACCEPT\n",
  "\nCOMMIT\n",
  "*nat\n",
  ":PROXY_INIT_OUTPUT - [0:0]\n",
  "OUTPUT",
  "PREROUTING",
  "PROXY_INIT_OUTPUT",
  "PROXY_INIT_REDIRECT",
  "|-- ",
  "/32 host LOCAL",
  "passwd: ",
  "ms",
  "1h",
  "NaN",
  "null",
  "true",
  "constructor",
  "__proto__",
  "toString",
] as const;

const piece = fc.constantFrom(...pieces);

/** A few pieces one after another. */
const joined = fc.array(piece, { maxLength: 12 }).map((parts) => parts.join(""));

/** Any text: pieces, all of Unicode with its broken halves, or what a keyboard has. */
export const anyText: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: joined },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 40 }) },
  { weight: 1, arbitrary: fc.string({ maxLength: 40 }) },
);

/** A text that can be made as long as is wanted: something said again and again, between a beginning and an end. */
export type Pumped = { readonly head: string; readonly again: string; readonly tail: string };

const few = fc.array(piece, { maxLength: 3 }).map((parts) => parts.join(""));

export const pumped: fc.Arbitrary<Pumped> = fc.record({
  head: few,
  again: fc.array(piece, { minLength: 1, maxLength: 3 }).map((parts) => parts.join("")),
  tail: few,
});

/** The text of about that many characters. */
export function pump({ head, again, tail }: Pumped, length: number): string {
  return head + again.repeat(Math.ceil(length / again.length)) + tail;
}

/** Each piece between two words, to be tried before anything random. */
export const plainlyPumped: readonly Pumped[] = pieces.map((again) => {
  return { head: "1", again, tail: "x" };
});
