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
  ["it is of another version", '{"cniVersion":"0.4.0"}', `${other} "0.4.0"`],
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
