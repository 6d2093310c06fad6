// Shortens lists for messages: the first few entries, and how many more there are.

import { printable } from "./printable.ts";

/** So many lines are told of one thing, */
const mostLines = 24;

/** and so many bytes, as they stand in JSON: with all else that an error or a log line says it stays under 8 KB. */
const mostBytes = 6_000;

/** The first few of these lines, and how many more there are. */
export function fewOf(lines: readonly string[], most = mostLines): string[] {
  const few: string[] = [];
  let bytes = 0;
  for (const line of lines.slice(0, most)) {
    bytes += JSON.stringify(line).length;
    if (bytes > mostBytes) break;
    few.push(line);
  }
  const more = lines.length - few.length;
  return more === 0 ? few : [...few, `and ${more} more`];
}

/** So many sentences are told in one line. */
const mostSentences = 10;

/** The first few sentences in one line, each printable, and how many there are besides. */
export function few(sentences: readonly string[]): string {
  const told = sentences.slice(0, mostSentences).map((sentence) => printable(sentence));
  return fewOf([...told, ...sentences.slice(mostSentences)], mostSentences).join("; ");
}
