// README's table of options is what the schema says.
import { expect, test } from "vitest";
import { section, tableIn } from "./readme.ts";
import { options } from "./schema.ts";

const [heading, ...rows] = tableIn(section("Options"));

test("the table of options has each key of the schema, with type and default", () => {
  expect(heading).toEqual(["key", "type", "default", "meaning"]);
  expect(rows.map(([key, type, initial]) => ({ path: key, type, initial }))).toEqual(options());
});

test("the table of options says what each of them means", () => {
  const unsaid = rows.filter(({ length, 3: meaning = "" }) => length !== 4 || meaning.length < 10);
  expect(unsaid).toEqual([]);
});
