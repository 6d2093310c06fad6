// The protocol's part of the plugin conf.
import { expect, test } from "vitest";
import { isJsonObject, member, parseNetworkConf } from "../../src/cni/conf.ts";
import { thrownBy } from "../fake/thrown.ts";

test("parseNetworkConf() gives the protocol's keys and the whole document", () => {
  const stdin =
    '{"cniVersion":"1.0.0","name":"net","type":"sluice","prevResult": {"2":0,"1":1.0} }';
  expect(parseNetworkConf(stdin)).toEqual({
    cniVersion: "1.0.0",
    name: "net",
    prevResult: '{"2":0,"1":1.0}',
    document: JSON.parse(stdin),
  });
});

test("parseNetworkConf() implies 0.1.0 when there is no cniVersion", () => {
  const implied = { cniVersion: "0.1.0", name: "n", prevResult: undefined };
  expect(parseNetworkConf('{"name":"n"}')).toEqual({ ...implied, document: { name: "n" } });
  const empty = { cniVersion: "", name: "n" };
  expect(parseNetworkConf(JSON.stringify(empty))).toEqual({ ...implied, document: empty });
});

test("parseNetworkConf() takes a null prevResult for none", () => {
  const document = { cniVersion: "1.0.0", name: "n", prevResult: null };
  const conf = { cniVersion: "1.0.0", name: "n", prevResult: undefined, document };
  expect(parseNetworkConf(JSON.stringify(document))).toEqual(conf);
});

test("parseNetworkConf() finds keys in any case when the exact one is not there", () => {
  const stdin = '{"CNIVersion":"1.0.0","NAME":"n","PrevResult":{}}';
  expect(parseNetworkConf(stdin)).toEqual({
    cniVersion: "1.0.0",
    name: "n",
    prevResult: "{}",
    document: JSON.parse(stdin),
  });
});

const undecodable = (problem: string) => `error unmarshall network config: ${problem}`;
const refused: [when: string, stdin: string, code: number, message: string, details: string][] = [
  ["it is a list", "[]", 6, undecodable("the conf is not a JSON object"), ""],
  ["it is a string", '"x"', 6, undecodable("the conf is not a JSON object"), ""],
  ["the name is a number", '{"name":1}', 6, undecodable("name is not a string"), ""],
  [
    "the version is a number",
    '{"name":"n","cniVersion":1}',
    6,
    undecodable("cniVersion is not a string"),
    "",
  ],
  ["it is null", "null", 7, "missing network name", ""],
  ["there is no name", "{}", 7, "missing network name", ""],
  ["the name is empty", '{"name":""}', 7, "missing network name", ""],
  ["the name is null", '{"name":null}', 7, "missing network name", ""],
  ["the name is a path", '{"name":"../x"}', 7, "invalid characters found in network name", "../x"],
  ["the name has a comma", '{"name":"a,b"}', 7, "invalid characters found in network name", "a,b"],
];

test.each(refused)(
  "parseNetworkConf() refuses stdin when %s",
  (_, stdin, code, message, details) => {
    expect(thrownBy(() => parseNetworkConf(stdin))).toEqual({ code, message, details });
  },
);

test("parseNetworkConf() says what is wrong with the JSON when it is none", () => {
  expect(thrownBy(() => parseNetworkConf(""))).toEqual({
    code: 6,
    message: undecodable("Unexpected end of JSON input"),
    details: "",
  });
});

test("member() prefers the exact key", () => {
  expect(member({ NAME: 1, name: 2 }, "name")).toEqual({ key: "name", value: 2 });
  expect(member({ NAME: 1 }, "name")).toEqual({ key: "NAME", value: 1 });
  expect(member({ other: 1 }, "name")).toBe(undefined);
  expect(member({}, "toString")).toBe(undefined);
});

const values: [value: unknown, is: boolean][] = [
  [{}, true],
  [{ a: 1 }, true],
  [[], false],
  [null, false],
  ["x", false],
  [undefined, false],
];

test.each(values)("isJsonObject() of %j is %s", (value, is) => {
  expect(isJsonObject(value)).toBe(is);
});
