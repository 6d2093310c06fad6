// Lists of the conf: nothing is dropped but empty entries, and what is said names the key.
import { expect, test } from "vitest";
import { readCidr } from "../../src/redirect/cidr.ts";
import { readConfList, readPortList } from "../../src/redirect/conf-list.ts";

const key = "linkerd.subnets-to-ignore";
const ten = { family: "ipv4", text: "10.0.0.0/8" };
const empty = "an empty entry is passed over";
const noSubnet = "is not a subnet (like 10.0.0.0/8 or fd00::/8)";
const rows: [entries: string[], values: object[], problems: string[], notes: string[]][] = [
  [[], [], [], []],
  [["10.0.0.0/8", "10.0.0.0/8"], [ten], [], []],
  [["", "10.0.0.0/8", " "], [ten], [], [`${key}: ${empty}`]],
  [["", "10.1.2.3/8"], [ten], [], [`${key}: ${empty}; "10.1.2.3/8" is read as 10.0.0.0/8`]],
  [["a", "10.0.0.0/8", "b"], [ten], [`${key}: "a" ${noSubnet}`], []],
  [["\u202e"], [], [`${key}: "\\u202e" ${noSubnet}`], []],
];

test.each(rows)("readConfList() reads %j", (...row) => {
  const [entries, values, problems, notes] = row;
  expect(readConfList(key, entries, readCidr)).toEqual({ values, problems, notes });
});

test("readPortList() takes a whole list in one string", () => {
  expect(readPortList("k", [80, "443-444,8080", ""])).toEqual({
    values: [
      { from: 80, to: 80 },
      { from: 443, to: 444 },
      { from: 8080, to: 8080 },
    ],
    problems: [],
    notes: [`k: ${empty}`],
  });
});
