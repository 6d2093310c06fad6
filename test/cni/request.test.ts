// The CNI_* environment: what is a call, and what is reported of one that is none.
import { expect, test } from "vitest";
import { parseRequest } from "../../src/cni/request.ts";
import { cniError, type Thrown, thrownBy } from "../fake/thrown.ts";

const full = {
  CNI_COMMAND: "ADD",
  CNI_CONTAINERID: "c0ffee",
  CNI_NETNS: "/run/netns/a",
  CNI_IFNAME: "eth0",
  CNI_ARGS: "K8S_POD_NAME=web",
  CNI_PATH: "/opt/cni/bin",
};
const fullRequest = {
  command: "ADD",
  containerId: "c0ffee",
  netns: "/run/netns/a",
  ifName: "eth0",
  args: "K8S_POD_NAME=web",
  netnsOverride: false,
};

test("parseRequest() gives the whole call when all is set", () => {
  expect(parseRequest({ ...full, HOME: "/root" })).toEqual(fullRequest);
});

test("parseRequest() gives empty values when the verb has none", () => {
  const none = { containerId: "", netns: "", ifName: "", args: "", netnsOverride: false };
  expect(parseRequest({ CNI_COMMAND: "VERSION" })).toEqual({ command: "VERSION", ...none });
  expect(parseRequest({ CNI_COMMAND: "nonsense" })).toEqual({ command: "nonsense", ...none });
});

const overrides: [value: string, meant: boolean][] = [
  ["1", true],
  ["true", true],
  ["TRUE", true],
  ["", false],
  ["0", false],
  ["yes", false],
];

test.each(overrides)("parseRequest() reads CNI_NETNS_OVERRIDE %j as %s", (value, meant) => {
  const env = { ...full, CNI_NETNS_OVERRIDE: value };
  expect(parseRequest(env)).toEqual({ ...fullRequest, netnsOverride: meant });
});

const missing: [command: string, names: string][] = [
  ["ADD", "CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH"],
  ["CHECK", "CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH"],
  ["DEL", "CNI_CONTAINERID,CNI_IFNAME,CNI_PATH"],
  ["GC", "CNI_PATH"],
  ["STATUS", "CNI_PATH"],
];

test.each(missing)(
  "parseRequest() names all that %s misses when nothing is set",
  (command, names) => {
    const unset = cniError(4, `required env variables [${names}] missing`);
    expect(thrownBy(() => parseRequest({ CNI_COMMAND: command }))).toEqual(unset);
    const empty = Object.fromEntries(names.split(",").map((name) => [name, ""]));
    expect(thrownBy(() => parseRequest({ CNI_COMMAND: command, ...empty }))).toEqual(unset);
  },
);

test("parseRequest() reports a bad id before it misses variables", () => {
  const env = { CNI_COMMAND: "ADD", CNI_CONTAINERID: "../x" };
  expect(thrownBy(() => parseRequest(env))).toEqual(badId("../x"));
});

const badId = (id: string) => cniError(4, "invalid characters in containerID", id);
const longId = cniError(4, "containerID is too long", "151 characters, at most 150");
const longName = cniError(
  4,
  "interface name is too long",
  "interface name should be less than 16 characters",
);
const dots = cniError(4, "interface name is . or ..");
const blanks = cniError(4, "interface name contains / or : or whitespace characters");
const bad: [variable: string, value: string, error: Thrown][] = [
  ["CNI_CONTAINERID", "-a", badId("-a")],
  ["CNI_CONTAINERID", "a/b", badId("a/b")],
  ["CNI_CONTAINERID", "a,b", badId("a,b")],
  ["CNI_CONTAINERID", "a\n", badId("a\n")],
  ["CNI_CONTAINERID", "ä", badId("ä")],
  ["CNI_CONTAINERID", "a".repeat(151), longId],
  ["CNI_IFNAME", "a".repeat(16), longName],
  ["CNI_IFNAME", "ä".repeat(8), longName],
  ["CNI_IFNAME", ".", dots],
  ["CNI_IFNAME", "..", dots],
  ["CNI_IFNAME", "eth/0", blanks],
  ["CNI_IFNAME", "eth:0", blanks],
  ["CNI_IFNAME", "eth 0", blanks],
  ["CNI_IFNAME", "eth\n", blanks],
  ["CNI_IFNAME", "eth\u0085", blanks],
];

test.each(bad)("parseRequest() refuses %s when it is %j", (variable, value, error) => {
  expect(thrownBy(() => parseRequest({ ...full, [variable]: value }))).toEqual(error);
});

const good: [variable: string, value: string][] = [
  ["CNI_CONTAINERID", "a".repeat(150)],
  ["CNI_CONTAINERID", "0a_b.c-d"],
  ["CNI_IFNAME", "a".repeat(15)],
  ["CNI_IFNAME", "net1,x"],
  ["CNI_IFNAME", "..."],
];

test.each(good)("parseRequest() takes %s when it is %j", (variable, value) => {
  const member = variable === "CNI_IFNAME" ? "ifName" : "containerId";
  expect(parseRequest({ ...full, [variable]: value })).toEqual({ ...fullRequest, [member]: value });
});
