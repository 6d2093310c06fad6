// Which families a pod is redirected in, by what its netns has: real links, addresses, routes and settings, whatever
// prevResult names.
import { describe, expect } from "vitest";
import { type Backend, backends, type Family, families } from "../../../src/netfilter/table.ts";
import type { LabNetns } from "../../lab/netns.ts";
import { complete, linkerd, ownLines, save } from "../../lab/states.ts";
import { addressOf, confOf, logLine, test } from "./level.ts";
import { test as wired } from "./wire.ts";

/** What is in a netns besides lo: ip's lines, of which the first two make a link and its peer. */
const link = ["link add eth1 type veth peer name eth1p", "link set eth1p up", "link set eth1 up"];
const disable = "eth1 eth1p";

type Pod = {
  readonly name: string;
  readonly prevResult: readonly Family[];
  readonly inside: readonly string[];
  /** Links whose IPv6 is turned off, before anything is done to them. */
  readonly disabled?: string;
  readonly ipv6?: boolean;
  readonly families: readonly Family[];
  readonly open?: readonly Family[];
  readonly warns?: RegExp;
};

const eks4 = ["address add 169.254.172.2/22 dev eth1", "route add default via 169.254.172.1"];
const unwanted = /the pod has IPv6 addresses and linkerd.ipv6 is off: they pass the proxy by/;

const pods: readonly Pod[] = [
  {
    name: "prevResult has IPv6, and a link that it does not name IPv4's default route",
    prevResult: ["ipv6"],
    inside: [...link, ...eks4],
    families: ["ipv4", "ipv6"],
  },
  {
    name: "prevResult has IPv4, and a link that it does not name an IPv6 address",
    prevResult: ["ipv4"],
    inside: [...link, "address add fd00:ec2::5/128 dev eth1 nodad"],
    families: ["ipv4", "ipv6"],
  },
  {
    name: "prevResult has IPv4, and a link that it does not name IPv6's default route",
    prevResult: ["ipv4"],
    inside: [...link, "-6 route add default via fe80::1 dev eth1"],
    families: ["ipv4", "ipv6"],
  },
  {
    name: "prevResult has IPv4, and there are link-local IPv6 addresses only",
    prevResult: ["ipv4"],
    inside: link,
    families: ["ipv4", "ipv6"],
  },
  {
    name: "there is nothing but lo",
    prevResult: [],
    inside: [],
    families: ["ipv4"],
    open: ["ipv6"],
  },
  {
    name: "IPv6 is disabled on each link",
    prevResult: ["ipv4"],
    inside: link,
    disabled: disable,
    families: ["ipv4"],
    open: ["ipv6"],
  },
  {
    name: "IPv6 is disabled on each link but one, and by default",
    prevResult: ["ipv4"],
    inside: link,
    disabled: "default eth1p",
    families: ["ipv4", "ipv6"],
  },
  {
    name: "ipv6 is off, and there is an IPv6 address",
    prevResult: ["ipv4"],
    inside: [...link, "address add fd00:ec2::5/128 dev eth1 nodad"],
    ipv6: false,
    families: ["ipv4"],
    warns: unwanted,
  },
  {
    name: "ipv6 is off, and there is an IPv6 route",
    prevResult: ["ipv4"],
    inside: [...link, "-6 route add default via fe80::1 dev eth1"],
    ipv6: false,
    families: ["ipv4"],
    warns: unwanted,
  },
  {
    name: "ipv6 is off, and there are link-local IPv6 addresses only",
    prevResult: ["ipv4"],
    inside: [...link, "-6 route add unreachable 2001:db8::/32"],
    ipv6: false,
    families: ["ipv4"],
  },
];

describe.for(backends)("over %s", (backend) => {
  test.for(pods)("ADD redirects $families in one child when $name", (pod, { attachment }) => {
    const { netns, call } = attachment;
    furnish(netns, pod);
    const conf = confFor(backend, pod);

    const added = call("ADD", conf);

    expect(added).toMatchObject({ exitCode: 0, stdout: JSON.stringify(conf.prevResult) });
    expect(logLine(added)).toMatchObject({ families: pod.families, execs: 1 });
    expect(held(netns, backend)).toStrictEqual(pod.families);
    expect(attachment.record()?.["open"]).toStrictEqual(pod.open);
    const warnings = added.stderr.split("\n").filter((line) => line.includes('"level":"warn"'));
    expect(warnings).toStrictEqual(
      pod.warns === undefined ? [] : [expect.stringMatching(pod.warns)],
    );
    const checked = call("CHECK", conf);
    expect(checked).toMatchObject({ exitCode: 0, stdout: "" });
    expect(logLine(checked)).toMatchObject({ execs: 1 });
  });

  test("ADD simulates the families that it would write", ({ attachment }) => {
    furnish(attachment.netns, { inside: link });
    const conf = { ...linkerd, "iptables-mode": backend, simulate: true, ipv6: true };
    const { call, netns } = attachment;
    const answers = ["ipv4", "ipv6"] as const;

    const added = call("ADD", confOf({ linkerd: conf }));

    expect(logLine(added)).toMatchObject({ families: answers });
    expect(held(netns, backend)).toStrictEqual([]);
  });
});

/** What comes to a pod after ADD, as by router advertisement. */
const arrivals: readonly { name: string; line: string; found: string }[] = [
  {
    name: "an address",
    line: "address add fd00:9::2/64 dev eth1 nodad",
    found: "address fd00:9::2",
  },
  {
    name: "a default route",
    line: "-6 route add default via fe80::1 dev eth1",
    found: "route ::/0",
  },
  {
    name: "a route in another table",
    line: "-6 route add 2001:db8::/32 dev eth1 table 77",
    found: "route 2001:db8::/32",
  },
];

test.for(arrivals)(
  "CHECK drifts when $name comes to a pod that had IPv6 disabled, and ADD heals it",
  ({ line, found }, { attachment }) => {
    const { netns, call } = attachment;
    furnish(netns, { inside: link, disabled: disable });
    const conf = confFor("nft", { prevResult: ["ipv4"] });
    call("ADD", conf);
    for (const name of disable.split(" ")) setDisabled(netns, name, 0);
    expect(call("CHECK", conf).exitCode).toBe(0);
    netns.run("ip", line.split(" "));

    const checked = call("CHECK", conf);

    const drift = `open-family (ipv6): expected no address and no route, since it is not redirected; found ${found}`;
    expect(JSON.parse(checked.stdout)).toMatchObject({ code: 100, details: drift });
    expect(call("ADD", conf).exitCode).toBe(0);
    expect(held(netns, "nft")).toStrictEqual(families);
    expect(call("CHECK", conf).exitCode).toBe(0);
  },
);

test("CHECK does not drift for IPv6 that comes to a pod of a conf with ipv6 off", ({
  attachment,
}) => {
  const { netns, call } = attachment;
  furnish(netns, { inside: link });
  const conf = confFor("nft", { prevResult: ["ipv4"], ipv6: false });
  call("ADD", conf);
  netns.run("ip", ["address", "add", addressOf.ipv6, "dev", "eth1"]);

  expect(call("CHECK", conf)).toMatchObject({ exitCode: 0, stdout: "" });
});

wired(
  "a peer that knows a pod only by its link-local address reaches the proxy",
  async ({ wire, attachment, other }) => {
    const { netns, call } = attachment;
    for (const side of [netns, other]) {
      side.run("ip", ["-6", "address", "flush", "scope", "global", "dev", "eth0"]);
      await expect.poll(() => tentative(side), { timeout: 20_000 }).toBe("");
    }
    const address = `${linkLocal(netns)}%eth0`;
    expect(wire.connectTo("peer", address, 8080)).toBe("pod 8080");

    expect(call("ADD", confFor("nft", { prevResult: ["ipv4"] })).exitCode).toBe(0);

    expect(wire.connectTo("peer", address, 8080)).toBe("pod 4143");
    // A socket that is tied to a link is not led to lo: it fails, as with linkerd-init's rules, and does not pass by.
    expect(wire.connectTo("app", `${linkLocal(other)}%eth0`, 8080)).not.toBe("peer 8080");
  },
);

function confFor(backend: Backend, { prevResult, ipv6 = true }: Pick<Pod, "prevResult" | "ipv6">) {
  return confOf({
    linkerd: { ...linkerd, "iptables-mode": backend, ipv6 },
    addresses: prevResult.map((family) => addressOf[family]),
  });
}

// A link's setting is there as soon as the link is; from then on it counts, whatever `default` says.
function furnish(netns: LabNetns, { inside, disabled = "" }: Pick<Pod, "inside" | "disabled">) {
  const [first, ...others] = inside;
  if (first !== undefined) netns.run("ip", first.split(" "));
  for (const name of disabled.split(" ").filter((one) => one !== "")) setDisabled(netns, name, 1);
  for (const line of others) netns.run("ip", line.split(" "));
}

function setDisabled(netns: LabNetns, name: string, value: 0 | 1): void {
  const file = `/proc/sys/net/ipv6/conf/${name}/disable_ipv6`;
  netns.run("sh", ["-c", `echo ${value} >${file}`]);
}

/** The families that hold all of ours; none may hold a part. */
function held(netns: LabNetns, backend: Backend): Family[] {
  const found = families.map(
    (family) => [family, ownLines(save({ netns, backend, family }))] as const,
  );
  const whole = found.filter(([, lines]) => lines.length > 0);
  for (const [, lines] of whole) expect(lines).toStrictEqual(complete);
  return whole.map(([family]) => family);
}

// Not to be used yet: the kernel asks first whether somebody else has it.
function tentative(netns: LabNetns): string {
  return netns.run("ip", ["-6", "address", "show", "dev", "eth0", "tentative"]).trim();
}

function linkLocal(netns: LabNetns): string {
  const text = netns.run("ip", ["-6", "-o", "address", "show", "dev", "eth0", "scope", "link"]);
  return /inet6 (\S+)\/64/.exec(text)?.[1] ?? "";
}
