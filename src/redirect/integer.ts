// The one reader of whole numbers that users write: ports, ids and seconds, in the conf and in annotations.

/** The least and the greatest number that is meant. */
export type Bounds = { readonly least: number; readonly most: number };

/** What a conf may hold where a number is meant: 4143 or "4143". */
export type NumberWord = number | string;

/**
 * A number in decimal digits, ten at most; zeros in front say nothing, as for Linkerd's own tools. No sign, blank, hex,
 * fraction or exponent. Undefined for all else, and outside of the bounds.
 */
export function readInteger(word: NumberWord, { least, most }: Bounds): number | undefined {
  const text = String(word);
  const value = /^[0-9]{1,10}$/.test(text) ? Number(text) : Number.NaN;
  return value >= least && value <= most ? value : undefined;
}
