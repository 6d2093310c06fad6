// Members of a JSON object, byte for byte.
import { expect, test } from "vitest";
import { rawMember, rawMembers } from "../../src/cni/raw-json.ts";

const found: [when: string, json: string, text: string | undefined][] = [
  ["it is an object", '{"a":{"b":[1,{"c":2}]},"d":1}', '{"b":[1,{"c":2}]}'],
  ["it is a list", '{"d":1,"a":[{"b":"]"},[]]}', '[{"b":"]"},[]]'],
  ["it is a string", '{"a":"x,}\\"y"}', '"x,}\\"y"'],
  ["it is a number at the end", '{"a":-1.50e+3}', "-1.50e+3"],
  ["it is a number before a comma", '{"a":12345678901234567890,"b":0}', "12345678901234567890"],
  ["it is true, with blanks around", '{ "a" :\n\ttrue , "b":0}', "true"],
  ["it is null", '{"a":null}', "null"],
  ["blanks are inside", '{"a": { "b" : 1 } }', '{ "b" : 1 }'],
  ["keys of it look like numbers", '{"a":{"2":0,"1":0}}', '{"2":0,"1":0}'],
  ["brackets stand in strings", '{"a":{"b":"}]","c":"\\\\"},"d":0}', '{"b":"}]","c":"\\\\"}'],
  ["a string ends in backslashes", '{"x":"\\\\\\\\","a":"\\\\\\""}', '"\\\\\\""'],
  ["it is there twice: the last", '{"a":1,"b":2,"a":3}', "3"],
  ["its name is escaped", '{"\\u0061":1}', "1"],
  ["only a nested object has it", '{"b":{"a":1},"c":[{"a":2}]}', undefined],
  ["only a string holds its name", '{"b":"\\"a\\":1"}', undefined],
  ["the object is empty", "{}", undefined],
  ["blanks are ahead", ' \r\n{ "a":0 }\n', "0"],
];

test.each(found)("rawMember() gives the member's text when %s", (_, json, text) => {
  expect(rawMember(json, "a")).toBe(text);
  expect(text === undefined ? undefined : JSON.parse(text)).toEqual(JSON.parse(json).a);
});

test("rawMember() gives the member's text when it is as large as a result can be", () => {
  const text = JSON.stringify({ long: "\\".repeat(300_000), deep: "[".repeat(1_000) });
  expect(rawMember(`{"a":${text},"b":1}`, "a")).toBe(text);
});

test("rawMembers() gives all members in order, with keys as they are meant and as they are written", () => {
  const json = ' { "b" : [1, {"c":2}] ,"\\u0061":1e400,"":"x,}","b":null}';
  expect(rawMembers(json)).toEqual([
    { key: "b", keyText: '"b"', text: '[1, {"c":2}]' },
    { key: "a", keyText: '"\\u0061"', text: "1e400" },
    { key: "", keyText: '""', text: '"x,}"' },
    { key: "b", keyText: '"b"', text: "null" },
  ]);
  expect(rawMembers("{}")).toEqual([]);
});
