import { expect, test } from "vitest";
import { type Declaration, declarationsIn, draw } from "./declarations.ts";

const text = `// A file.
import { one } from "./one.ts";

/** A type. */
export type Thing = {
  readonly name: string;
};

const short = 1;
const long = [
  "a",

  "b",
].join("");

/** A function. */
export async function work({
  name,
}: Thing): Promise<void> {
  await one(name);

  await one(short + long);
}
// Another.
function other(): void {}
`;

test("declarationsIn() finds functions and values from their first to their last line", () => {
  expect(declarationsIn("f.ts", text)).toEqual([
    { file: "f.ts", from: 9, to: 9 },
    { file: "f.ts", from: 10, to: 14 },
    { file: "f.ts", from: 17, to: 23 },
    { file: "f.ts", from: 25, to: 25 },
  ]);
});

const ten = Array.from({ length: 10 }, (_, i): Declaration => {
  return { file: "f.ts", from: 10 * i + 1, to: 10 * i + 4 };
});

test("draw() takes as many as have so many lines, in their order, and the same for a seed", () => {
  const drawn = draw(ten, { seed: 7, lines: 13 });
  expect(drawn).toEqual(ten.filter((declaration) => drawn.includes(declaration)));
  expect(drawn.length).toBe(4);
  expect(draw(ten, { seed: 7, lines: 13 })).toEqual(drawn);
});

test("draw() gives each the same chance over the seeds", () => {
  const counts = ten.map((one) => {
    const seeds = Array.from({ length: 1_000 }, (_, i) => i + 1);
    return seeds.filter((seed) => draw(ten, { seed, lines: 8 }).includes(one)).length;
  });
  for (const count of counts) expect(Math.abs(count - 200)).toBeLessThan(50);
});

test("draw() takes all where no number of lines is said", () => {
  expect(draw(ten, { seed: 7, lines: Infinity })).toEqual(ten);
});
