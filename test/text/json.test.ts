import { expect, test } from "vitest";
import { deepestLevel, parseJson } from "../../src/text/json.ts";

const lists = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
const objects = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
const tooDeep = "the JSON is nested to more than 2500 levels";

test.each(['{"a":[1,"[[[",null,{}],"b":false}', "[]", "1", "null", lists(2_500), objects(2_500)])(
  "parseJson() gives the value of %j",
  (text) => {
    expect(parseJson(text)).toEqual(JSON.parse(text));
  },
);

test.each([
  ["lists", lists(deepestLevel + 1)],
  ["objects", objects(deepestLevel + 1)],
  ["6,000 lists", lists(6_000)],
  ["6,000 objects", objects(6_000)],
  ["as many lists as fit in stdin", lists(500_000)],
  ["a list deep in the last member", `{"a":1,"b":[[],${lists(deepestLevel)}]}`],
])("parseJson() refuses %s that are too deep", (_, text) => {
  expect(() => parseJson(text)).toThrow(new SyntaxError(tooDeep));
});

test("parseJson() refuses what is no JSON, in the parser's words", () => {
  expect(() => parseJson("[".repeat(6_000))).toThrow("Unexpected end of JSON input");
});
