// From the conf's words to an intent.
import { expect, test } from "vitest";
import { parseConf } from "../../src/mesh/conf.ts";
import { apiServerPorts, intentOfConf } from "../../src/mesh/values.ts";
import { familiesOf, type Intent } from "../../src/redirect/intent.ts";
import { cniError, thrownBy } from "../fake/thrown.ts";
import { cases, leastConf } from "../lab/case.ts";

function intentOf(linkerd: object, addresses: readonly string[] = []): Intent {
  const conf = parseConf({ linkerd }).linkerd;
  return intentOfConf(conf, familiesOf(addresses, conf.ipv6));
}

test.each(cases)("intentOfConf() means: $name", ({ linkerd, addresses, intent }) => {
  expect(intentOf(linkerd, addresses)).toEqual(intent);
});

test.each(cases)("intentOfConf() means the same when lists are turned round: $name", (entry) => {
  const turned = Object.entries(entry.linkerd).map(([key, value]) => {
    return [key, Array.isArray(value) ? value.toReversed() : value] as const;
  });
  expect(intentOf(Object.fromEntries(turned), entry.addresses)).toEqual(entry.intent);
});

const required = ["incoming-proxy-port", "outgoing-proxy-port", "proxy-uid"];

test.each(required)("intentOfConf() misses %s", (key) => {
  const { [key]: _, ...rest } = leastConf;
  expect(thrownBy(() => intentOf(rest))).toEqual(
    cniError(7, `invalid conf: linkerd.${key} is missing`),
  );
});

const noPort = "is not a port (1 to 65535)";
const noRange = "is not a range of ports (1-65535, lower end first)";
const noUser = "is not a user id (1 to 4294967294)";
const noGroup = "is not a group id (1 to 4294967294, or -1 for none)";
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
  ["inbound-ports-to-ignore", [""], '"" is not a port or a range of ports'],
  ["outbound-ports-to-ignore", ["80,abc"], `"abc" ${noPort}`],
  ["outbound-ports-to-ignore", ["9000-8000"], `"9000-8000" ${noRange}`],
  ["outbound-ports-to-ignore", [65536], `"65536" ${noPort}`],
  ["subnets-to-ignore", ["10.0.0.0/8", "10.0.0.1"], `"10.0.0.1" ${noSubnet}`],
  ["subnets-to-ignore", ["10.0.0.0/8,10.1.0.0/16"], `"10.0.0.0/8,10.1.0.0/16" ${noSubnet}`],
  ["subnets-to-ignore", [""], `"" ${noSubnet}`],
];

test.each(wrong)("intentOfConf() refuses %s %j and names the entry", (key, value, problem) => {
  const error = cniError(7, `invalid conf: linkerd.${key}: ${problem}`);
  expect(thrownBy(() => intentOf({ ...leastConf, [key]: value }))).toEqual(error);
});

test("apiServerPorts() reads and merges the conf's list", () => {
  const ports = (list: unknown) =>
    apiServerPorts(parseConf({ linkerd: {}, sluice: { "api-server-ports": list } }).sluice);
  expect(ports([6443, "443-444", "442"])).toEqual([
    { from: 442, to: 444 },
    { from: 6443, to: 6443 },
  ]);
  const error = cniError(7, `invalid conf: sluice.api-server-ports: "x" ${noPort}`);
  expect(thrownBy(() => ports(["x"]))).toEqual(error);
});
