// Prints the demo: numbered scenes, what was done, what was seen, and a mark for each claim. Knows nothing of networks.
import { styleText } from "node:util";

type Output = { readonly isTTY?: boolean; write(text: string): unknown };
type Style = Parameters<typeof styleText>[0];

export type Narrator = {
  readonly heading: (title: string, facts: readonly (readonly [string, string])[]) => void;
  /** Begins the next scene. */
  readonly scene: (title: string) => void;
  /** What is done now: a command, or a sentence. */
  readonly did: (text: string) => void;
  /** What was seen. */
  readonly saw: (...lines: readonly string[]) => void;
  /** What is said to be so, and whether it is; `seen` is printed when it is not. */
  readonly claim: (text: string, holds: boolean, seen: unknown) => void;
  /** Something broke: it counts like a claim that does not hold. */
  readonly broke: (error: unknown) => void;
  /** The last line. True when all that was claimed is so. */
  readonly close: (scenes: number, seconds: number) => boolean;
};

const width = 100;

/** A narrator on `output`. Colours are for terminals, and not when they are unwanted. */
export function makeNarrator(output: Output, noColour: boolean): Narrator {
  const colours = output.isTTY === true && !noColour;
  const paint = (style: Style, text: string) =>
    colours ? styleText(style, text, { validateStream: false }) : text;
  const print = (indent: string, text: string, style?: Style) => {
    for (const line of wrap(text, width - indent.length)) {
      output.write(`${indent}${style === undefined ? line : paint(style, line)}\n`);
    }
  };
  const marked = (mark: string, text: string) => {
    const [first = "", ...rest] = wrap(text, width - 5);
    output.write(`   ${mark} ${first}\n`);
    for (const line of rest) output.write(`     ${line}\n`);
  };
  const count = { scenes: 0, held: 0, failed: 0 };
  const fail = (text: string, seen: string) => {
    count.failed += 1;
    marked(paint("red", "✗"), text);
    if (seen !== "") print("     ", seen);
  };
  return {
    heading: (title, facts) => {
      print("", title, "bold");
      for (const [name, text] of facts) print("   ", `${paint("dim", name.padEnd(6))} ${text}`);
    },
    scene: (title) => {
      count.scenes += 1;
      output.write("\n");
      print("", `${count.scenes}  ${title}`, ["bold", "cyan"]);
    },
    did: (text) => print("   ", text, "dim"),
    saw: (...lines) => {
      for (const line of lines) print("     ", line);
    },
    claim: (text, holds, seen) => {
      if (!holds) return fail(text, `seen: ${show(seen)}`);
      count.held += 1;
      marked(paint("green", "✓"), text);
    },
    broke: (error) => {
      const said = error instanceof Error ? error.message : String(error);
      const [first = "", ...rest] = said.split("\n");
      fail(first, rest.join("\n"));
    },
    close: (scenes, seconds) => {
      const { held, failed } = count;
      const good = failed === 0;
      const claims = good ? `all ${held} claims hold` : `${failed} of ${held + failed} claims fail`;
      const line = `${count.scenes} of ${scenes} scenes, ${claims}, ${seconds.toFixed(1)} s`;
      output.write("\n");
      print("", line, ["bold", good ? "green" : "red"]);
      return good;
    },
  };
}

function show(seen: unknown): string {
  return typeof seen === "string" ? seen : JSON.stringify(seen);
}

/** Lines of at most `columns`, broken at blanks; what continues a line stands a little further in. */
function wrap(text: string, columns: number): string[] {
  return text
    .trimEnd()
    .split("\n")
    .flatMap((line) => {
      const lines = [""];
      for (const word of line.split(/(?<= )(?=\S)/)) {
        const last = lines.length - 1;
        const longer = `${lines[last]}${word}`;
        if (longer.trimEnd().length <= columns || lines[last] === "") lines[last] = longer;
        else lines.push(`  ${word}`);
      }
      return lines.map((each) => each.trimEnd());
    });
}
