// Which parts of the sources are mutated: a sample is drawn of whole functions and values, so that all mutants of one are in.
// Pure: texts in, places out.

/** A function or value at a file's top level: its lines, counted from 1, both included. */
export type Declaration = { readonly file: string; readonly from: number; readonly to: number };

const begins = /^(?:export )?(?:async )?(?:function|const|let|class) /;
/** Something else; a line that ends what began further up begins with a bracket, or the end of a text. */
const beginsAnew = /^[^\s)\]}`]/;

/** All of a file. Types and imports are none: they do nothing. */
export function declarationsIn(file: string, text: string): Declaration[] {
  const lines = text.split("\n");
  return lines.flatMap((line, i) => {
    if (!begins.test(line)) return [];
    const next = lines.findIndex((other, at) => at > i && beginsAnew.test(other));
    const block = lines.slice(i, next === -1 ? lines.length : next);
    const last = block.findLastIndex((other) => other.trim() !== "");
    return [{ file, from: i + 1, to: i + 1 + last }];
  });
}

/** Draws, by the seed, until there are so many lines: each with the same chance, in the order of files and lines. */
export function draw(
  declarations: readonly Declaration[],
  { seed, lines }: { readonly seed: number; readonly lines: number },
): Declaration[] {
  if (lines === Infinity) return [...declarations];
  const random = randomFrom(seed);
  const shuffled = declarations
    .map((declaration) => ({ declaration, rank: random() }))
    .toSorted((one, other) => one.rank - other.rank);
  let left = lines;
  const drawn = new Set<Declaration>();
  for (const { declaration } of shuffled) {
    if (left <= 0) break;
    left -= declaration.to - declaration.from + 1;
    drawn.add(declaration);
  }
  return declarations.filter((declaration) => drawn.has(declaration));
}

// mulberry32, by Tommy Ettinger: the same numbers on each machine.
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
