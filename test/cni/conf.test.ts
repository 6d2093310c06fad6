// The protocol's part of the plugin conf.
import { expect, test } from "vitest";
import { isJsonObject, member, parseNetworkConf } from "../../src/cni/conf.ts";
import { cniError, type Thrown, thrownBy } from "../fake/thrown.ts";

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

const undecodable = (problem: string) => cniError(6, `error unmarshall network config: ${problem}`);
const noObject = undecodable("the conf is not a JSON object");
const noName = cniError(7, "missing network name");
const badName = (name: string) => cniError(7, "invalid characters found in network name", name);
const refused: [when: string, stdin: string, error: Thrown][] = [
  ["it is a list", "[]", noObject],
  ["it is a string", '"x"', noObject],
  ["the name is a number", '{"name":1}', undecodable("name is not a string")],
  [
    "the version is a number",
    '{"name":"n","cniVersion":1}',
    cniError(6, "decoding version from network config: cniVersion is not a string"),
  ],
  ["it is null", "null", noName],
  ["there is no name", "{}", noName],
  ["the name is empty", '{"name":""}', noName],
  ["the name is null", '{"name":null}', noName],
  ["the name is a path", '{"name":"../x"}', badName("../x")],
  ["the name has a comma", '{"name":"a,b"}', badName("a,b")],
  [
    "prevResult is nested 6,000 deep",
    `{"name":"n","prevResult":${"[".repeat(6_000)}${"]".repeat(6_000)}}`,
    undecodable("the JSON is nested to more than 2500 levels"),
  ],
  ["there is nothing", "", undecodable("Unexpected end of JSON input")],
];

test.each(refused)("parseNetworkConf() refuses stdin when %s", (_, stdin, error) => {
  expect(thrownBy(() => parseNetworkConf(stdin))).toEqual(error);
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
