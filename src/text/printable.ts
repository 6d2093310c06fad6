// Text from outside (a pod's rules, a tool's words, an annotation), made fit to be told: on stdout, in a log, on a terminal.
// The one place that cuts it: the author of a text decides neither how long our lines are nor where they end.

/**
 * The text on one line: characters that could pass for others, break the line or turn it around are spelt out, and of what
 * is longer than `longest` characters the middle is left out.
 */
export function printable(text: string, longest = 300): string {
  // What is left out anyway need not be spelt out.
  const ends = text.length <= longest ? text : text.slice(0, longest) + text.slice(-longest);
  const ascii = ends.replaceAll(/[^\x20-\x7e]/g, (char) => {
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
  if (ascii.length <= longest) return ascii;
  return `${ascii.slice(0, longest / 2)} ... ${ascii.slice(-longest / 3)}`;
}
