// An invalid conf: ADD and CHECK name the key and the value, and leave the netns without any table.
import { describe, expect } from "vitest";
import { linkerd } from "../../lab/states.ts";
import { confOf, kernelState, logLine, named, test } from "./level.ts";

/** What is put into a good conf's `linkerd` (undefined takes the key out), and the message that it gives. */
type Bad = { readonly put: Readonly<Record<string, unknown>>; readonly says: string };

/** What a key takes, in the message's words: of an entry, where the value is a list of one. */
const expectations: Readonly<Record<string, string>> = {
  "ports-to-redirect": "array",
  "inbound-ports-to-ignore": "array",
  "outbound-ports-to-ignore": "array",
  "subnets-to-ignore": "array",
  "inbound-ports-to-ignore.0": "number or string",
  "subnets-to-ignore.0": "string",
  simulate: "boolean",
  ipv6: "boolean",
  "iptables-mode": 'one of "auto", "nft", "legacy", "plain", ""',
};

function wrongType(key: string, value: unknown, at: string = key): Bad {
  const shown = JSON.stringify(Array.isArray(value) && at !== key ? value[0] : value);
  const says = `${at}: expected ${expectations[at] ?? "number or string"}, found ${shown}`;
  return { put: { [key]: value }, says };
}

function noPort(key: string, value: unknown, shown: string): Bad {
  return { put: { [key]: value }, says: `${key}: "${shown}" is not a port (1 to 65535)` };
}

function noRange(key: string, entry: string): Bad {
  const says = `${key}: "${entry}" is not a range of ports (1-65535, lower end first)`;
  return { put: { [key]: [entry] }, says };
}

function noSubnet(entry: string): Bad {
  const says = `subnets-to-ignore: "${entry}" is not a subnet (like 10.0.0.0/8 or fd00::/8)`;
  return { put: { "subnets-to-ignore": ["10.0.0.0/8", entry] }, says };
}

function noUser(value: unknown): Bad {
  const says = `proxy-uid: ${JSON.stringify(value)} is not a user id (1 to 4294967294)`;
  return { put: { "proxy-uid": value }, says };
}

function noGroup(value: unknown): Bad {
  const says = `proxy-gid: ${JSON.stringify(value)} is not a group id (1 to 4294967294, or -1 for none)`;
  return { put: { "proxy-gid": value }, says };
}

function missing(key: string): Bad {
  return { put: { [key]: undefined }, says: `${key} is missing` };
}

const bads: readonly Bad[] = [
  wrongType("incoming-proxy-port", true),
  wrongType("outgoing-proxy-port", [4140]),
  { put: { "proxy-uid": null }, says: "proxy-uid is missing" },
  wrongType("proxy-gid", {}),
  wrongType("ports-to-redirect", 8080),
  wrongType("inbound-ports-to-ignore", "4190"),
  wrongType("inbound-ports-to-ignore", [false], "inbound-ports-to-ignore.0"),
  wrongType("outbound-ports-to-ignore", {}),
  wrongType("subnets-to-ignore", "10.0.0.0/8"),
  wrongType("subnets-to-ignore", [8], "subnets-to-ignore.0"),
  wrongType("simulate", 1),
  wrongType("ipv6", "yes"),
  wrongType("iptables-mode", 7),
  wrongType("iptables-mode", "nftables"),
  wrongType("iptables-mode", "NFT"),
  missing("incoming-proxy-port"),
  missing("outgoing-proxy-port"),
  missing("proxy-uid"),
  noPort("incoming-proxy-port", 0, "0"),
  noPort("incoming-proxy-port", "65536", "65536"),
  noPort("outgoing-proxy-port", 0, "0"),
  noPort("outgoing-proxy-port", 65536, "65536"),
  noPort("outgoing-proxy-port", -1, "-1"),
  noPort("outgoing-proxy-port", 4140.5, "4140.5"),
  noPort("outgoing-proxy-port", "0x102c", "0x102c"),
  noPort("outgoing-proxy-port", "http", "http"),
  noPort("outgoing-proxy-port", "", ""),
  noPort("ports-to-redirect", [0], "0"),
  noPort("ports-to-redirect", [80, 65536], "65536"),
  noPort("ports-to-redirect", ["80-90"], "80-90"),
  noPort("inbound-ports-to-ignore", [4190, 0], "0"),
  noPort("inbound-ports-to-ignore", ["4190,65536"], "65536"),
  noPort("outbound-ports-to-ignore", ["0"], "0"),
  noPort("outbound-ports-to-ignore", ["443,[4222]"], "[4222]"),
  noPort("outbound-ports-to-ignore", ["80:90"], "80:90"),
  noRange("inbound-ports-to-ignore", "25-23"),
  noRange("outbound-ports-to-ignore", "1-65536"),
  {
    put: { "outbound-ports-to-ignore": ["80\n-A OUTPUT -j ACCEPT"] },
    says: 'outbound-ports-to-ignore: "80\\n-A OUTPUT -j ACCEPT" is not a port or a range of ports',
  },
  noSubnet("10.0.0"),
  noSubnet("10.0.0.0/33"),
  noSubnet("10.1/16"),
  noSubnet("010.0.0.1/8"),
  noSubnet("fd00::/129"),
  noSubnet("::1::/64"),
  noSubnet("localhost/8"),
  noUser(0),
  noUser("0"),
  noUser(-1),
  noUser("root"),
  noUser("2102-2103"),
  noUser(4294967295),
  noGroup("staff"),
  noGroup(-2),
  noGroup(4294967295),
  {
    put: { "incoming-proxy-port": true, "iptables-mode": "x" },
    says: 'incoming-proxy-port: expected number or string, found true; linkerd.iptables-mode: expected one of "auto", "nft", "legacy", "plain", "", found "x"',
  },
];

test.for(named(bads, ({ says }) => says))(
  "ADD fails with 7 and writes nothing when the conf has %s",
  ([, { put, says }], { attachment }) => {
    const conf = confOf({ linkerd: { ...linkerd, ...put } });

    const answer = attachment.call("ADD", conf);

    expect(answer).toMatchObject({
      exitCode: 1,
      stdout: errorOf(7, `invalid conf: linkerd.${says}`),
    });
    // No child: nothing was run, in the netns or elsewhere.
    expect(logLine(answer)["execs"] ?? 0).toBe(0);
    expect(attachment.records()).toStrictEqual([]);
    expect(kernelState(attachment.netns)).toBe("");
  },
);

const someBads: readonly Bad[] = [
  noPort("outgoing-proxy-port", 65536, "65536"),
  noSubnet("10.0.0.0/33"),
  noUser(0),
  wrongType("iptables-mode", "nftables"),
];

describe("with rules in place", () => {
  test.for(named(someBads, ({ says }) => says))(
    "ADD and CHECK fail with 7 and leave them alone when the conf has %s",
    ([, { put, says }], { attachment }) => {
      attachment.call("ADD", confOf({ linkerd: { ...linkerd, "iptables-mode": "nft" } }));
      const before = kernelState(attachment.netns);
      const conf = confOf({ linkerd: { ...linkerd, ...put } });
      const expected = { exitCode: 1, stdout: errorOf(7, `invalid conf: linkerd.${says}`) };

      expect(attachment.call("ADD", conf)).toMatchObject(expected);
      // Without the record, which knows better than the conf.
      expect(attachment.call("CHECK", conf, { CONTAINERID: "c2" })).toMatchObject(expected);
      expect(kernelState(attachment.netns)).toBe(before);
    },
  );
});

const broken: readonly { readonly text: string; readonly says: string }[] = [
  { text: "", says: "Unexpected end of JSON input" },
  {
    text: "{",
    says: "Expected property name or '}' in JSON at position 1 (line 1 column 2)",
  },
  { text: "sluice", says: "Unexpected token 's', \"sluice\" is not valid JSON" },
  {
    text: '{"cniVersion":"1.1.0","name":"lab",}',
    says: "Expected double-quoted property name in JSON at position 35 (line 1 column 36)",
  },
  { text: "[]", says: "the conf is not a JSON object" },
  { text: '"lab"', says: "the conf is not a JSON object" },
  { text: '{"cniVersion":"1.1.0","name":7}', says: "name is not a string" },
];

test.for(named(broken, ({ text }) => text))(
  "ADD and CHECK fail with 6 and write nothing when stdin is `%s`",
  ([, { text, says }], { attachment }) => {
    const stdout = errorOf(6, `error unmarshall network config: ${says}`);

    expect(attachment.call("ADD", text)).toMatchObject({ exitCode: 1, stdout });
    expect(attachment.call("CHECK", text)).toMatchObject({ exitCode: 1, stdout });
    expect(kernelState(attachment.netns)).toBe("");
  },
);

function errorOf(code: number, msg: string): string {
  return JSON.stringify({ cniVersion: "1.1.0", code, msg });
}
