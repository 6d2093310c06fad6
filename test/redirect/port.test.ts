// Ports and ranges: read, merged, packed into multiports.
import { expect, test } from "vitest";
import { mergePorts, packPorts, parsePort, parsePorts } from "../../src/redirect/port.ts";
import { thrownBy } from "../fake/thrown.ts";
import { cases } from "../lab/case.ts";

const span = (from: number, to = from) => ({ from, to });

const ports: [text: string, port: number][] = [
  ["1", 1],
  ["80", 80],
  ["00080", 80],
  ["65535", 65535],
];

test.each(ports)("parsePort() reads %j as %i", (text, port) => {
  expect(parsePort(text)).toBe(port);
});

const noPorts = [
  "",
  "0",
  "65536",
  "99999",
  "123456",
  "-1",
  "+1",
  "0x50",
  "1e3",
  "80.5",
  " 80",
  "http",
];

test.each(noPorts)("parsePort() refuses %j", (text) => {
  const error = `PortError: ${JSON.stringify(text)} is not a port (1 to 65535)`;
  expect(thrownBy(() => parsePort(text))).toBe(error);
});

const lists: [text: string, found: { from: number; to: number }[]][] = [
  ["80", [span(80)]],
  ["80,443", [span(80), span(443)]],
  ["443,80,443", [span(443), span(80), span(443)]],
  [" 80\t,\r\n443 ", [span(80), span(443)]],
  ["80-90", [span(80, 90)]],
  ["80-80", [span(80)]],
  ["0-65535", [span(1, 65535)]],
  ["0-1", [span(1)]],
  ["1-2999,3001-8080,8082-65535", [span(1, 2999), span(3001, 8080), span(8082, 65535)]],
];

test.each(lists)("parsePorts() reads %j", (text, found) => {
  expect(parsePorts(text)).toEqual(found);
});

const notPort = "is not a port (1 to 65535)";
const notRange = "is not a range of ports (1-65535, lower end first)";
const neither = "is not a port or a range of ports";
const badLists: [text: string, entry: string, problem: string][] = [
  ["", "", neither],
  [",,,", "", neither],
  ["80,", "", neither],
  ["80, ,443", "", neither],
  ["0", "0", notPort],
  ["80,abc,443", "abc", notPort],
  ["80,65536", "65536", notPort],
  ["443,[4222]", "[4222]", notPort],
  ["80:90", "80:90", notPort],
  ["80\u00a0", "80\u00a0", notPort],
  ["80\n-A OUTPUT -j ACCEPT", "80\n-A OUTPUT -j ACCEPT", neither],
  ["9000-8000", "9000-8000", notRange],
  ["80-", "80-", notRange],
  ["-80", "-80", notRange],
  ["-", "-", notRange],
  ["0-0", "0-0", notRange],
  ["80-65536", "80-65536", notRange],
  ["80 - 90", "80 - 90", notRange],
  ["a-b", "a-b", notRange],
  ["1-2-3", "1-2-3", neither],
  ["--", "--", neither],
];

test.each(badLists)("parsePorts() refuses %j and names %j", (text, entry, problem) => {
  expect(thrownBy(() => parsePorts(text))).toBe(`PortError: ${JSON.stringify(entry)} ${problem}`);
});

const merges: [when: string, given: [number, number][], merged: [number, number][]][] = [
  ["there are none", [], []],
  [
    "they are unsorted",
    [
      [90, 90],
      [80, 80],
    ],
    [
      [80, 80],
      [90, 90],
    ],
  ],
  [
    "one is there twice",
    [
      [80, 80],
      [80, 80],
    ],
    [[80, 80]],
  ],
  [
    "they overlap",
    [
      [80, 90],
      [85, 95],
    ],
    [[80, 95]],
  ],
  [
    "one holds the other",
    [
      [80, 90],
      [82, 83],
      [91, 91],
    ],
    [[80, 91]],
  ],
  [
    "they are neighbours",
    [
      [82, 82],
      [80, 80],
      [81, 81],
    ],
    [[80, 82]],
  ],
  [
    "a port is between them",
    [
      [80, 80],
      [82, 82],
    ],
    [
      [80, 80],
      [82, 82],
    ],
  ],
  [
    "they begin alike",
    [
      [80, 80],
      [80, 90],
      [80, 85],
    ],
    [[80, 90]],
  ],
  [
    "they are all ports",
    [
      [3001, 65535],
      [1, 2999],
      [3000, 3000],
    ],
    [[1, 65535]],
  ],
];

test.each(merges)("mergePorts() gives one set when %s", (_, given, merged) => {
  const spans = (pairs: [number, number][]) => pairs.map(([from, to]) => span(from, to));
  expect(mergePorts(spans(given))).toEqual(spans(merged));
});

test("mergePorts() leaves what it has merged as it is", () => {
  for (const { intent } of cases) {
    expect(mergePorts(intent.excludeInbound)).toEqual(intent.excludeInbound);
  }
});

const evens = (count: number) => Array.from({ length: count }, (_, i) => span(100 + 2 * i));
const evenWords = "100,102,104,106,108,110,112,114,116,118,120,122,124,126";
const tens = (count: number) =>
  Array.from({ length: count }, (_, i) => span(10 * i + 1, 10 * i + 5));

const packs: [when: string, given: { from: number; to: number }[], packed: string[]][] = [
  ["there are none", [], []],
  ["one port is given", [span(80)], ["80"]],
  ["a range is given", [span(80, 90)], ["80:90"]],
  ["a pair is given: singly", [span(4190, 4191)], ["4190,4191"]],
  ["three in a row are given: as a range", [span(80, 82)], ["80:82"]],
  ["fifteen ports fit", evens(15), [`${evenWords},128`]],
  ["the sixteenth does not fit", evens(16), [`${evenWords},128`, "130"]],
  [
    "seven ranges and a port fit",
    [...tens(7), span(99)],
    ["1:5,11:15,21:25,31:35,41:45,51:55,61:65,99"],
  ],
  ["the eighth range does not fit", tens(8), ["1:5,11:15,21:25,31:35,41:45,51:55,61:65", "71:75"]],
  ["a range would take the last slot", [...evens(14), span(200, 210)], [evenWords, "200:210"]],
  ["a pair would be torn apart", [...evens(14), span(200, 201)], [evenWords, "200,201"]],
  [
    "the boundary is behind a range",
    [...evens(14), span(200, 210), span(300)],
    [evenWords, "200:210,300"],
  ],
];

test.each(packs)("packPorts() packs fifteen slots when %s", (_, given, packed) => {
  expect(packPorts(given)).toEqual(packed);
});
