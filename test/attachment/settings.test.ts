// What kernel settings were before the first of us, from record to record.
import { expect, test } from "vitest";
import { beforesIn, withBefores } from "../../src/attachment/settings.ts";

test("beforesIn() takes the first that is known of each setting", () => {
  const [one, two] = [
    {
      settings: [
        { name: "a", value: "1" },
        { name: "b", before: "2" },
      ],
    },
    {
      settings: [
        { name: "a", before: "3" },
        { name: "b", before: "4" },
      ],
    },
  ];
  expect(beforesIn([one, two])).toEqual(
    new Map([
      ["b", "2"],
      ["a", "3"],
    ]),
  );
  expect(beforesIn([])).toEqual(new Map());
});

test("withBefores() says what is known of these settings, and of others", () => {
  const befores = new Map([
    ["a", "1"],
    ["b", "2"],
  ]);
  const settings = [
    { name: "a", value: "5", before: "9" },
    { name: "c", value: "6" },
  ];
  expect(withBefores(settings, befores)).toEqual([
    { name: "a", value: "5", before: "1" },
    { name: "c", value: "6" },
    { name: "b", before: "2" },
  ]);
});
