// Prints the demo: numbered scenes, what was done, what was seen, and a mark for each claim. Knows nothing of networks.
import { styleText } from "node:util";

type Output = { readonly isTTY?: boolean; write(text: string): unknown };
type Style = Parameters<typeof styleText>[0];

export type Narrator = {
  readonly heading: (title: string, facts: readonly (readonly [string, string])[]) => void;
  /** Begins the next scene. */
  readonly scene: (title: string) => void;
  /** What is done now, as a command or a sentence. */
  readonly did: (text: string) => void;
  /** What was seen: lines as they are. */
  readonly saw: (...lines: readonly string[]) => void;
  /** What is said to be so, and whether it is; `seen` is printed when it is not. */
  readonly claim: (text: string, holds: boolean, seen?: unknown) => void;
  /** Something broke: it counts like a claim that does not hold. */
  readonly broke: (error: unknown) => void;
  /** The last lines. Gives the process' exit status. */
  readonly close: (seconds: number) => number;
};

/** A narrator on `output`; `plain` is without colours, and so is everything but a terminal. */
export function makeNarrator(output: Output, plain: boolean): Narrator {
  const colours = output.isTTY === true && !plain;
  const paint = (style: Style, text: string) =>
    colours ? styleText(style, text, { validateStream: false }) : text;
  const line = (text = "") => output.write(`${text}\n`);
  const count = { scenes: 0, held: 0, failed: 0 };
  const fail = (text: string, more: readonly string[]) => {
    count.failed += 1;
    line(`   ${paint("red", "✗")} ${paint("bold", text)}`);
    for (const each of more) line(`     ${each}`);
  };
  return {
    heading: (title, facts) => {
      line(paint("bold", title));
      for (const [name, text] of facts) line(`   ${paint("dim", name.padEnd(6))} ${text}`);
    },
    scene: (title) => {
      count.scenes += 1;
      line(`\n${paint(["bold", "cyan"], `${count.scenes}  ${title}`)}`);
    },
    did: (text) => line(`   ${paint("dim", text)}`),
    saw: (...lines) => {
      for (const each of lines) line(`     ${each}`);
    },
    claim: (text, holds, seen) => {
      if (!holds) return fail(text, seen === undefined ? [] : [`seen: ${show(seen)}`]);
      count.held += 1;
      line(`   ${paint("green", "✓")} ${text}`);
    },
    broke: (error) => {
      const [first = "", ...rest] = textOf(error).split("\n");
      fail(first, rest);
    },
    close: (seconds) => {
      const { scenes, held, failed } = count;
      const told = failed === 0 ? `all ${held} claims held` : `${failed} of ${held + failed} failed`;
      const style: Style = failed === 0 ? ["bold", "green"] : ["bold", "red"];
      line(`\n${paint(style, told)} in ${scenes} scenes, ${seconds.toFixed(1)} s`);
      return failed === 0 ? 0 : 1;
    },
  };
}

function show(seen: unknown): string {
  return typeof seen === "string" ? seen.trimEnd() : JSON.stringify(seen);
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
