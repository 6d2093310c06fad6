// From the conf's words to an intent.
import { expect, test } from "vitest";
import { readSection } from "../../../src/cni/section.ts";
import { type Intent, intentSchema } from "../../../src/mesh/linkerd/intent.ts";
import { linkerdSchema } from "../../../src/mesh/linkerd/schema.ts";
import { type ReadValues, readValues } from "../../../src/mesh/linkerd/values.ts";
import { cases, leastConf, leastIntent } from "../../lab/case.ts";

function read(linkerd: Readonly<Record<string, unknown>>): ReadValues {
  return readValues(readSection(linkerdSchema, linkerd, "linkerd.").values);
}

test.each(cases)("readValues() means: $name", ({ linkerd, intent }) => {
  expect(read(linkerd)).toEqual({ intent, problems: [], notes: expect.any(Array) });
});

test.each(cases)("readValues() means the same when lists are turned round: $name", (entry) => {
  const turned = Object.entries(entry.linkerd).map(([key, value]) => {
    return [key, Array.isArray(value) ? value.toReversed() : value] as const;
  });
  expect(read(Object.fromEntries(turned)).intent).toEqual(entry.intent);
});

const required = ["incoming-proxy-port", "outgoing-proxy-port", "proxy-uid"];

test.each(required)("readValues() misses %s", (key) => {
  const { [key]: _, ...rest } = leastConf;
  const problems = [`linkerd.${key} is missing`];
  expect(read(rest)).toEqual({ intent: undefined, problems, notes: [] });
});

const noPort = "is not a port (1 to 65535)";
const noRange = "is not a range of ports (1-65535, lower end first)";
const noUser = "is not a user id (1 to 4294967294)";
const noGroup = "is not a group id (1 to 4294967294, or -1 for none)";
const noTime = "is not a duration (like 30s or 1h)";
const noSubnet = "is not a subnet (like 10.0.0.0/8 or fd00::/8)";
const wrong: [key: string, value: unknown, problem: string][] = [
  ["incoming-proxy-port", 0, `"0" ${noPort}`],
  ["incoming-proxy-port", 65536, `"65536" ${noPort}`],
  ["incoming-proxy-port", 4143.5, `"4143.5" ${noPort}`],
  ["outgoing-proxy-port", -1, `"-1" ${noPort}`],
  ["outgoing-proxy-port", "http", `"http" ${noPort}`],
  ["outgoing-proxy-port", "", `"" ${noPort}`],
  ["outgoing-proxy-port", 1e21, `"1e+21" ${noPort}`],
  ["proxy-uid", 0, `0 ${noUser}`],
  ["proxy-uid", -1, `-1 ${noUser}`],
  ["proxy-uid", 4_294_967_295, `4294967295 ${noUser}`],
  ["proxy-uid", "root", `"root" ${noUser}`],
  ["proxy-uid", "2102-2103", `"2102-2103" ${noUser}`],
  ["proxy-uid", 21.02, `21.02 ${noUser}`],
  ["proxy-gid", -2, `-2 ${noGroup}`],
  ["proxy-gid", 4_294_967_295, `4294967295 ${noGroup}`],
  ["proxy-gid", "wheel", `"wheel" ${noGroup}`],
  ["ports-to-redirect", [80, "80-90"], `"80-90" ${noPort}`],
  ["ports-to-redirect", [0], `"0" ${noPort}`],
  ["inbound-ports-to-ignore", [80, "http"], `"http" ${noPort}`],
  ["inbound-ports-to-ignore", [0], `"0" ${noPort}`],
  ["inbound-ports-to-ignore", ["25 587"], `"25 587" ${noPort}`],
  ["outbound-ports-to-ignore", ["80,abc"], `"abc" ${noPort}`],
  ["outbound-ports-to-ignore", ["9000-8000"], `"9000-8000" ${noRange}`],
  ["outbound-ports-to-ignore", [65536], `"65536" ${noPort}`],
  ["subnets-to-ignore", ["10.0.0.0/8", "10.0.0.1/"], `"10.0.0.1/" ${noSubnet}`],
  ["subnets-to-ignore", ["10.0.0.0/8,10.1.0.0/16"], `"10.0.0.0/8,10.1.0.0/16" ${noSubnet}`],
  ["proxy-uid", "0x836", `"0x836" ${noUser}`],
  ["proxy-uid", "2102 ", `"2102 " ${noUser}`],
  ["proxy-uid", "00", `"00" ${noUser}`],
  ["proxy-gid", "+0", `"+0" ${noGroup}`],
  ["proxy-gid", "-01", `"-01" ${noGroup}`],
  ["proxy-gid", "0x0", `"0x0" ${noGroup}`],
  ["close-wait-timeout", "3600", `"3600" ${noTime}`],
  ["close-wait-timeout", 3600, `3600 ${noTime}`],
  ["close-wait-timeout", "-1h", `"-1h" ${noTime}`],
];

test.each(wrong)("readValues() refuses %s %j and names the entry", (key, value, problem) => {
  const problems = [`linkerd.${key}: ${problem}`];
  expect(read({ ...leastConf, [key]: value })).toEqual({ intent: undefined, problems, notes: [] });
});

const spellings: [change: object, meant: Partial<Intent>][] = [
  [{ "proxy-gid": "00" }, {}],
  [{ "proxy-gid": "0" }, {}],
  [{ "proxy-gid": 0 }, {}],
  [{ "proxy-gid": -0 }, {}],
  [{ "proxy-gid": "-1" }, {}],
  [{ "proxy-gid": -1 }, {}],
  [{ "proxy-gid": "0000002102" }, { proxyGid: 2102 }],
  [{ "proxy-uid": "02102" }, {}],
  [{ "incoming-proxy-port": "04143" }, {}],
  [{ "inbound-ports-to-ignore": ["00080-0090"] }, { excludeInbound: [{ from: 80, to: 90 }] }],
  [{ "ports-to-redirect": ["080", 80] }, { onlyInbound: [80] }],
  [{ "close-wait-timeout": "1h30m" }, { closeWaitSeconds: 5400 }],
  [{ "close-wait-timeout": "500ms" }, {}],
  [{ "close-wait-timeout": 0 }, {}],
  [{ "inbound-ports-to-ignore": ["25,", ""] }, { excludeInbound: [{ from: 25, to: 25 }] }],
  [{ "ports-to-redirect": [""], "outbound-ports-to-ignore": [" , "] }, {}],
  [
    { "subnets-to-ignore": ["", "10.1.2.3/8", "fd00::1"] },
    {
      excludeSubnets: [
        { family: "ipv4", text: "10.0.0.0/8" },
        { family: "ipv6", text: "fd00::1/128" },
      ],
    },
  ],
];

test.each(spellings)(
  "readValues() reads %j, and its own schema reads that back",
  (change, meant) => {
    const { intent } = read({ ...leastConf, ...change });
    expect(intent).toEqual({ ...leastIntent, ...meant });
    expect(intentSchema.parse(intent)).toEqual(intent);
  },
);

const remarks: [keys: object, notes: string[]][] = [
  [leastConf, []],
  [
    { "inbound-ports-to-ignore": ["25,"] },
    ["linkerd.inbound-ports-to-ignore: an empty entry is passed over"],
  ],
  [
    { "subnets-to-ignore": ["", "10.1.2.3/8", "10.0.0.1"], "ports-to-redirect": [" "] },
    [
      "linkerd.ports-to-redirect: an empty entry is passed over",
      'linkerd.subnets-to-ignore: an empty entry is passed over; "10.1.2.3/8" is read as 10.0.0.0/8; "10.0.0.1" is read as 10.0.0.1/32',
    ],
  ],
];

test.each(remarks)("readValues() tells what is read otherwise in %j", (linkerd, notes) => {
  expect(read({ ...leastConf, ...linkerd }).notes).toEqual(notes);
});

test("readValues() tells all values that are invalid, one a key", () => {
  const linkerd = {
    "incoming-proxy-port": 0,
    "proxy-uid": 0,
    "inbound-ports-to-ignore": ["a", "b"],
  };
  expect(read(linkerd)).toEqual({
    intent: undefined,
    problems: [
      `linkerd.incoming-proxy-port: "0" ${noPort}`,
      "linkerd.outgoing-proxy-port is missing",
      `linkerd.proxy-uid: 0 ${noUser}`,
      `linkerd.inbound-ports-to-ignore: "a" ${noPort}`,
    ],
    notes: [],
  });
});
