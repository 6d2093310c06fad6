// prevResult: read for its addresses, and handed on as it came.
import { expect, test } from "vitest";
import { readPrevResult } from "../../src/cni/result.ts";
import { cniError, thrownBy } from "../fake/thrown.ts";

const conf = (prevResult: string | undefined) => ({
  cniVersion: "1.0.0",
  name: "n",
  prevResult,
  document: {},
});

const dualStack =
  '{"cniVersion":"1.0.0","ips":[{"address":"10.1.2.3/24"},{"address":"fd00::3/64"}]}';
const unlikely = '{ "cniVersion" : "1.0.0", "x":{"2":1,"1":12345678901234567890} }';

test("readPrevResult() gives the addresses of both families", () => {
  const addresses = ["10.1.2.3/24", "fd00::3/64"];
  expect(readPrevResult(conf(dualStack))).toEqual({ text: dualStack, addresses });
});

const kept: [when: string, prevResult: string | undefined, text: string][] = [
  ["there is none", undefined, '{"cniVersion":"1.0.0"}'],
  ["JSON.stringify would change its text", unlikely, unlikely],
  ["it has no version", '{ "ips": [] }', '{"cniVersion":"1.0.0","ips": [] }'],
  ["it is empty", "{ }", '{"cniVersion":"1.0.0"}'],
  ["its version is empty", '{"a":1,"cniVersion":""}', '{"a":1,"cniVersion":"1.0.0"}'],
  ["its version is null", '{"cniVersion":null}', '{"cniVersion":"1.0.0"}'],
  ["its ips are null", '{"ips":null}', '{"cniVersion":"1.0.0","ips":null}'],
];

test.each(kept)("readPrevResult() hands prevResult on when %s", (_, prevResult, text) => {
  expect(readPrevResult(conf(prevResult))).toEqual({ text, addresses: [] });
});

const other = "result type supports [1.0.0] but unmarshalled CNIVersion is";
const refused: [when: string, prevResult: string, problem: string][] = [
  ["it is a list", "[]", "it is not a JSON object"],
  ["it is a string", '"x"', "it is not a JSON object"],
  ["it is of a version without chains", '{"cniVersion":"0.2.0","ip4":{}}', `${other} "0.2.0"`],
  ["it is of a version to come", '{"cniVersion":"2.0.0"}', `${other} "2.0.0"`],
  ["its version is a name of every object", '{"cniVersion":"toString"}', `${other} "toString"`],
  ["its version is a number", '{"cniVersion":1}', `${other} 1`],
  ["its ips are no list", '{"ips":{}}', "ips is not a list"],
  ["an entry of ips is null", '{"ips":[null]}', "an entry of ips has no address"],
  [
    "an address is missing",
    '{"ips":[{"address":"10.0.0.1/8"},{}]}',
    "an entry of ips has no address",
  ],
  ["an address is a number", '{"ips":[{"address":1}]}', "an entry of ips has no address"],
];

test.each(refused)("readPrevResult() refuses prevResult when %s", (_, prevResult, problem) => {
  const error = cniError(7, `could not parse prevResult: ${problem}`);
  expect(thrownBy(() => readPrevResult(conf(prevResult)))).toEqual(error);
});

const old =
  '"interfaces":[{"name":"eth0","mac":"m","sandbox":"/n"}],"ips":[{"version":"4","address":"10.1.2.3/24","interface":0},{"version":"6","address":"fd00::3/64"}],"x":[1e400]';
const recent = old.replaceAll(/"version":"[46]",/g, "");
const newest = recent.replace('"sandbox"', '"mtu":1500,"socketPath":"/s","pciID":"p","sandbox"');

const versions: [from: string, to: string, given: string, printed: string][] = [
  ["0.3.0", "0.4.0", old, old],
  ["0.4.0", "0.3.1", old, old],
  ["0.3.1", "1.0.0", old, recent],
  ["0.4.0", "1.1.0", old, recent],
  ["1.0.0", "1.1.0", newest, newest],
  ["1.1.0", "1.0.0", newest, newest],
  ["1.0.0", "0.4.0", recent, old],
  ["1.1.0", "0.3.0", newest, old],
  ["1.1.0", "0.4.0", '"ips":null,"interfaces":null', '"ips":null,"interfaces":null'],
  ["1.1.0", "0.4.0", '"ips":[],"interfaces":[null]', '"ips":[],"interfaces":[null]'],
];

test.each(versions)(
  "readPrevResult() prints one of %s in %s: %s",
  (...[from, to, given, printed]) => {
    const prevResult = `{"cniVersion":"${from}", ${given} }`;
    const { text, addresses } = readPrevResult({ ...conf(prevResult), cniVersion: to });
    expect(text).toBe(`{"cniVersion":"${to}",${printed}}`);
    expect(addresses).toEqual(given.includes("10.1") ? ["10.1.2.3/24", "fd00::3/64"] : []);
  },
);

test("readPrevResult() leaves no other version behind, in whatever case and number it came", () => {
  const prevResult = '{"a":1,"CNIVersion":"0.4.0","cniversion":"0.3.1","cniVersion":"0.4.0"}';
  expect(readPrevResult(conf(prevResult)).text).toBe(
    '{"a":1,"cniVersion":"1.0.0","cniVersion":"1.0.0","cniVersion":"1.0.0"}',
  );
});

test("readPrevResult() refuses to convert interfaces that are no list", () => {
  const prevResult = '{"cniVersion":"1.1.0","interfaces":{}}';
  expect(thrownBy(() => readPrevResult({ ...conf(prevResult), cniVersion: "0.4.0" }))).toEqual(
    cniError(7, "could not parse prevResult: interfaces is not a list"),
  );
});
