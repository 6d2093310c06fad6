// How what others wrote is told of: in one line that can be read, and no more of it than that.

/** So many of a kind are told of; of the others, how many there are. */
const mostTold = 10;

/** The first few sentences, each printable, and how many there are besides. */
export function few(sentences: readonly string[]): string {
  const told = sentences.slice(0, mostTold).map(printable).join("; ");
  const more = sentences.length - mostTold;
  return more > 0 ? `${told}; and ${more} more` : told;
}

/** So much of one sentence is told. */
const longest = 300;

/**
 * A sentence that quotes what a user wrote, of any length and in any script: characters that could pass for others, or turn
 * the line around, are spelt out, and of a long one the middle is left out.
 */
export function printable(sentence: string): string {
  const ends = [sentence.slice(0, longest), sentence.slice(longest).slice(-longest)].map(spelt);
  const ascii = ends.join("");
  const isWhole = sentence.length <= 2 * longest && ascii.length <= longest;
  return isWhole ? ascii : `${ascii.slice(0, 150)} ... ${ascii.slice(-100)}`;
}

function spelt(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, (char) => {
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
