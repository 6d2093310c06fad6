// How what others wrote is told of: in one line that can be read, and no more of it than that.

import { printable } from "./printable.ts";

/** So many of a kind are told of; of the others, how many there are. */
const mostTold = 10;

/** The first few sentences, each printable, and how many there are besides. */
export function few(sentences: readonly string[]): string {
  const told = sentences
    .slice(0, mostTold)
    .map((sentence) => printable(sentence))
    .join("; ");
  const more = sentences.length - mostTold;
  return more > 0 ? `${told}; and ${more} more` : told;
}
