// Lists as users write them: entries between commas, read one by one, so that the caller may refuse the list for one bad
// entry or go on with the good ones. Each step is linear in the text: its author may be anyone who may make a pod.

/** Why an entry cannot be read; the sentence begins with the entry. */
export type Unreadable = { readonly problem: string };

/** What was read of one entry. */
export type Read<T> = {
  readonly value: T;
  /** A sentence, where the entry is read otherwise than it is written. */
  readonly note?: string;
};

/** What was read of a list. */
export type ReadList<T> = {
  readonly values: readonly T[];
  /** One for each entry that cannot be read. */
  readonly problems: readonly string[];
  readonly notes: readonly string[];
};

/** Reads each entry of a list, and what is there twice once; blanks around an entry do not count. */
export function readList<T>(
  entries: readonly string[],
  read: (entry: string) => Read<T> | Unreadable,
): ReadList<T> {
  const results = [...new Set(entries.map(trimBlanks))].map(read);
  const good = results.filter((result) => "value" in result);
  return {
    values: good.map(({ value }) => value),
    problems: results.flatMap((result) => ("value" in result ? [] : [result.problem])),
    notes: good.flatMap(({ note }) => (note === undefined ? [] : [note])),
  };
}

/** A value that was read of a word; where it is undefined, the problem, which begins with the word. */
export function readAs<T>(
  word: number | string,
  value: T | undefined,
  problem: string,
): Read<T> | Unreadable {
  return value === undefined ? { problem: `${JSON.stringify(word)} ${problem}` } : { value };
}

const blanks = " \t\r\n";

/** The text without blanks, tabs and line ends around it. By index: a pattern would try every blank inside as an end. */
export function trimBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && blanks.includes(text.charAt(start))) start += 1;
  while (end > start && blanks.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(start, end);
}
