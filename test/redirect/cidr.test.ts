// Subnets: read strictly, written as iptables-save prints them.
import { expect, test } from "vitest";
import { familyOf, mergeCidrs, parseCidr, readCidr } from "../../src/redirect/cidr.ts";
import { thrownBy } from "../fake/thrown.ts";

const good: [entry: string, text: string][] = [
  ["10.0.0.0/8", "10.0.0.0/8"],
  ["10.1.2.3/8", "10.0.0.0/8"],
  ["10.255.255.255/9", "10.128.0.0/9"],
  ["192.168.1.1/31", "192.168.1.0/31"],
  ["192.168.1.1/32", "192.168.1.1/32"],
  ["255.255.255.255/1", "128.0.0.0/1"],
  ["1.2.3.4/0", "0.0.0.0/0"],
  [" \t10.0.0.0/8\r\n", "10.0.0.0/8"],
  ["fd00::/8", "fd00::/8"],
  ["FD00::1/8", "fd00::/8"],
  ["fd12:3456:789a::1/33", "fd12:3456::/33"],
  ["fd12:3456:ffff::1/33", "fd12:3456:8000::/33"],
  ["::/0", "::/0"],
  ["1::/0", "::/0"],
  ["::1/128", "::1/128"],
  ["::2:1/128", "::0.2.0.1/128"],
  ["2001:0db8:0000:0000:0001:0000:0000:0001/128", "2001:db8::1:0:0:1/128"],
  ["2001:db8:0:1:1:1:1:1/128", "2001:db8:0:1:1:1:1:1/128"],
  ["2001:db8::1:1:1:1:1/128", "2001:db8:0:1:1:1:1:1/128"],
  ["2001:0:0:1:0:0:0:1/128", "2001:0:0:1::1/128"],
  ["1:2:3:4:5:6:7::/128", "1:2:3:4:5:6:7:0/128"],
  ["1:0:0:4:5:6:0:0/128", "1::4:5:6:0:0/128"],
  ["::ffff:10.1.2.3/128", "::ffff:10.1.2.3/128"],
  ["::ffff:a01:203/104", "::ffff:10.0.0.0/104"],
  ["::ffff:0:0/96", "::ffff:0.0.0.0/96"],
  ["::1.2.3.4/128", "::1.2.3.4/128"],
  ["64:ff9b::192.0.2.1/128", "64:ff9b::c000:201/128"],
];

test.each(good)("parseCidr() reads %j as %s", (entry, text) => {
  expect(parseCidr(entry)).toEqual({ family: text.includes(":") ? "ipv6" : "ipv4", text });
});

test.each(good)(
  "parseCidr() of %j is what the URL standard makes of the address",
  (entry, text) => {
    const [address = "", prefix = ""] = entry.trim().split("/");
    if (!address.includes(":") || prefix !== "128") return;
    const host = new URL(`http://[${address}]`).hostname;
    expect(new URL(`http://[${text.split("/")[0]}]`).hostname).toBe(host);
  },
);

const bad = [
  "",
  "/",
  "10.0.0.0/",
  "10.0.0.0/33",
  "10.0.0.0/08",
  "10.0.0.0/-1",
  "10.0.0.0/8/8",
  "10.0.0.0/255.0.0.0",
  "54.164.234.192/32ss",
  "10.1/16",
  "10.0.0.0.0/8",
  "256.0.0.0/8",
  "010.0.0.1/8",
  "0x0a.0.0.1/8",
  "167772161/8",
  "localhost/8",
  "10.0.0.0/8,10.1.0.0/16",
  "10.0.0.0 /8",
  "10.0.0.0/8\n-A OUTPUT -j ACCEPT",
  "10.0.0.1/",
  "fd00::/",
  "fd00::/129",
  "fd00::1::/64",
  "fd00:/8",
  ":/8",
  ":::/8",
  "1:::1.2.3.4/128",
  ":1.2.3.4/128",
  "1:2:3:4:5:6:7/64",
  "1:2:3:4:5:6:7:8:9/64",
  "1:2:3:4:5:6:7:8::/64",
  "1:2:3:4::5:6:7:8/64",
  "fd00::12345/64",
  "fd00::g/64",
  "fe80::1%eth0/64",
  "[fd00::]/8",
  "::1.2.3/128",
  "1.2.3.4::/128",
  "::1.2.3.4:5/128",
];

const asWritten = ["10.0.0.0/8", " 10.1.2.3/32", "FD00::/8", "1.2.3.4/32", "::/0", "0:0::0/0"];

test.each(asWritten)("readCidr() has no note about %j", (entry) => {
  expect(readCidr(entry)).toEqual({ value: parseCidr(entry) });
});

const otherwise: [entry: string, text: string][] = [
  ["10.1.2.3/8", "10.0.0.0/8"],
  ["1.2.3.4/0", "0.0.0.0/0"],
  ["fd00::1/64", "fd00::/64"],
  ["10.0.0.1", "10.0.0.1/32"],
  ["fd00::1", "fd00::1/128"],
  ["::", "::/128"],
];

test.each(otherwise)("readCidr() notes that %s is read as %s", (entry, text) => {
  const note = `"${entry}" is read as ${text}`;
  expect(readCidr(entry)).toEqual({ value: parseCidr(text), note });
});

test.each(bad)("parseCidr() refuses %j", (entry) => {
  const problem = "is not a subnet (like 10.0.0.0/8 or fd00::/8)";
  expect(thrownBy(() => parseCidr(entry))).toBe(`CidrError: ${JSON.stringify(entry)} ${problem}`);
});

const families: [address: string, family: "ipv4" | "ipv6"][] = [
  ["10.1.2.3/24", "ipv4"],
  ["10.1.2.3", "ipv4"],
  ["fd00::3/64", "ipv6"],
  ["::ffff:10.1.2.3", "ipv6"],
];

test.each(families)("familyOf() %s is %s", (address, family) => {
  expect(familyOf(address)).toBe(family);
});

const merges: [when: string, given: string[], merged: string[]][] = [
  ["there are none", [], []],
  ["one is there twice", ["10.0.0.0/8", "10.1.2.3/8"], ["10.0.0.0/8"]],
  ["they are of both families", ["fd00::/8", "10.0.0.0/8"], ["10.0.0.0/8", "fd00::/8"]],
  ["text would sort otherwise", ["100.0.0.0/8", "20.0.0.0/8"], ["20.0.0.0/8", "100.0.0.0/8"]],
  ["prefixes differ", ["10.0.0.0/16", "10.0.0.0/8"], ["10.0.0.0/8", "10.0.0.0/16"]],
  ["groups are short", ["fd00:100::/32", "fd00:20::/32"], ["fd00:20::/32", "fd00:100::/32"]],
];

test.each(merges)("mergeCidrs() gives one order when %s", (_, given, merged) => {
  expect(mergeCidrs(given.map(parseCidr)).map(({ text }) => text)).toEqual(merged);
  expect(mergeCidrs(given.toReversed().map(parseCidr)).map(({ text }) => text)).toEqual(merged);
});
