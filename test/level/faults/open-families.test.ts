// A family whose tools do not work: left out and told where the netns does not speak it, an error where it does; and
// what CHECK says when it comes later.
import { describe, expect } from "vitest";
import { backends, type Family, families } from "../../../src/netfilter/table.ts";
import { namesOf, realOnes, realTools, says, type Tools, versioned } from "../../lab/fake-tools.ts";
import type { LabNetns } from "../../lab/netns.ts";
import { linkerd } from "../../lab/states.ts";
import { addressOf, confOf } from "../netns/level.ts";
import { logLines, test } from "./node.ts";
import { everyTable, nameOf, readAll } from "./run/tables.ts";

/** A pod whose links have link-local addresses, and what else is said. */
const link = ["link add eth1 type veth peer name eth1p", "link set eth1p up", "link set eth1 up"];

const prefixOf = { ipv4: "iptables", ipv6: "ip6tables" } as const;
const refusal = says({ stderr: "RULE_APPEND failed (Operation not supported)\n", exitCode: 4 });
const busy = says({ stderr: "Resource temporarily unavailable\n", exitCode: 4 });
const hidden = says({ stdout: "# Table `nat' is incompatible, use 'nft' tool.\n" });

/** Ways in which a family's tools do not work. */
const faults: readonly { name: string; tools: (prefix: string, suffix: string) => Tools }[] = [
  { name: "refuse", tools: (prefix, suffix) => ({ [`${prefix}${suffix}-restore`]: refusal }) },
  {
    name: "are always busy",
    tools: (prefix, suffix) => ({ [`${prefix}${suffix}-restore`]: busy }),
  },
  {
    name: "do not show the table",
    tools: (prefix, suffix) => ({ [`${prefix}${suffix}-save`]: hidden }),
  },
];

const absent = (family: Family) =>
  Object.fromEntries(
    Object.entries(realTools).filter(([name]) => !name.startsWith(`${prefixOf[family]}-`)),
  );

const each = backends.flatMap((backend) => faults.map((fault) => ({ backend, ...fault })));

describe.for(each)("IPv6's tools over $backend that $name", ({ backend, tools }) => {
  const broken = { ...realTools, ...tools("ip6tables", `-${backend}`) };

  test.concurrent("leave IPv6 open in a pod with link-local addresses, until it has more", async ({
    node,
  }) => {
    furnish(node.pod, link);
    node.tools.install(broken);
    const conf = confFor(backend, ["ipv4"]);

    const added = await node.call("ADD", conf);

    expect(added.exitCode).toBe(0);
    expect(logLines(added)).toMatchObject([
      { level: "warn", family: "ipv6", msg: expect.stringMatching("ipv6 is not redirected") },
      { level: "info", families: ["ipv4"] },
    ]);
    expect(node.stateFile("attachments/lab,c1,eth0.json")).toMatchObject({ open: ["ipv6"] });
    expect(await held(node.pod)).toStrictEqual([nameOf({ backend, family: "ipv4" })]);
    expect((await node.call("CHECK", conf)).exitCode).toBe(0);

    furnish(node.pod, [`address add ${addressOf.ipv6} dev eth1 nodad`]);
    const checked = await node.call("CHECK", conf);
    expect(JSON.parse(checked.stdout)).toMatchObject({
      code: 100,
      details: expect.stringMatching(/^open-family \(ipv6\): .*; found address fd00:9::2$/),
    });
    expect((await node.call("ADD", conf)).exitCode).toBe(1);
    expect(await held(node.pod)).toStrictEqual([nameOf({ backend, family: "ipv4" })]);

    node.tools.install(realTools);
    expect((await node.call("ADD", conf)).exitCode).toBe(0);
    expect((await node.call("CHECK", conf)).exitCode).toBe(0);
    await node.call("DEL", conf);
    expect(await held(node.pod)).toStrictEqual([]);
  });

  test.concurrent("fail ADD and leave nothing in a pod with an IPv6 route that prevResult does not name", async ({
    node,
  }) => {
    furnish(node.pod, [...link, "-6 route add default via fe80::1 dev eth1"]);
    node.tools.install(broken);

    const added = await node.call("ADD", confFor(backend, ["ipv4"]));

    expect(added.exitCode).toBe(1);
    expect(JSON.parse(added.stdout).msg).toMatch(`(${backend}, ipv6, table nat`);
    expect(await held(node.pod)).toStrictEqual([]);
    expect(node.stateFile("attachments/lab,c1,eth0.json")).toBeUndefined();
  });
});

describe.for(backends)("over %s", (backend) => {
  test.concurrent("ADD leaves IPv4 open in a pod of IPv6 only when IPv4's tools refuse", async ({
    node,
  }) => {
    furnish(node.pod, [...link, `address add ${addressOf.ipv6} dev eth1 nodad`]);
    node.tools.install({ ...realTools, [`iptables-${backend}-restore`]: refusal });
    const conf = confFor(backend, ["ipv6"]);

    const added = await node.call("ADD", conf);

    expect(added.exitCode).toBe(0);
    expect(node.stateFile("attachments/lab,c1,eth0.json")).toMatchObject({ open: ["ipv4"] });
    expect(await held(node.pod)).toStrictEqual([nameOf({ backend, family: "ipv6" })]);
    furnish(node.pod, [`address add ${addressOf.ipv4} dev eth1`]);
    expect(JSON.parse((await node.call("CHECK", conf)).stdout)).toMatchObject({
      code: 100,
      details: expect.stringMatching(/^open-family \(ipv4\): .*; found route 10\.9\.0\.0\/24$/),
    });
  });

  test.concurrent("ADD fails when IPv4's tools refuse and a link that prevResult does not name has IPv4's default route", async ({
    node,
  }) => {
    const eks = ["address add 169.254.172.2/22 dev eth1", "route add default via 169.254.172.1"];
    furnish(node.pod, [...link, ...eks]);
    node.tools.install({ ...realTools, [`iptables-${backend}-restore`]: refusal });

    const added = await node.call("ADD", confFor(backend, ["ipv6"]));

    expect(JSON.parse(added.stdout)).toMatchObject({
      code: 101,
      msg: expect.stringMatching(`${backend}, ipv4, table nat`),
    });
    expect(await held(node.pod)).toStrictEqual([]);
  });

  test.concurrent.for(families)(
    "ADD needs no programs for %s where the netns does not speak it",
    async (family, { node }) => {
      const [other] = families.filter((one) => one !== family);
      furnish(node.pod, link);
      node.tools.install(absent(family));

      const added = await node.call("ADD", confFor(backend, other === undefined ? [] : [other]));

      expect(added.exitCode).toBe(0);
      expect(node.stateFile("attachments/lab,c1,eth0.json")).toMatchObject({ open: [family] });
    },
  );

  test.concurrent("ADD fails when no family can be redirected, whatever the netns speaks", async ({
    node,
  }) => {
    furnish(node.pod, link);
    node.tools.install({
      ...realTools,
      ...Object.fromEntries(
        families.map((family) => [`${prefixOf[family]}-${backend}-restore`, refusal]),
      ),
    });

    const added = await node.call("ADD", confFor(backend, []));

    expect(JSON.parse(added.stdout)).toMatchObject({ code: 101 });
    expect(await held(node.pod)).toStrictEqual([]);
  });
});

/** More than is looked at: nobody knows what is behind it, so it counts as spoken. */
const many = Array.from({ length: 1_200 }, (_, i) => (i + 1).toString(16));
const crowds: readonly { family: Family; lines: readonly string[] }[] = [
  { family: "ipv6", lines: many.map((n) => `address add fe80::${n}/64 dev eth1 nodad`) },
  {
    family: "ipv4",
    lines: many.map((_, i) => `address add 169.254.${i >> 8}.${i & 255}/32 dev eth1`),
  },
];

test.concurrent.for(crowds)(
  "ADD takes $family for spoken when a pod has more link-local addresses than are looked at",
  async ({ family, lines }, { node }) => {
    furnish(node.pod, link);
    node.pod.run("ip", ["-batch", "-"], lines.join("\n"));
    node.tools.install({ ...realTools, [`${prefixOf[family]}-nft-restore`]: refusal });
    const named = families.filter((one) => one !== family);

    const added = await node.call("ADD", confFor("nft", named));

    expect(JSON.parse(added.stdout)).toMatchObject({ code: 101 });
    expect(await held(node.pod)).toStrictEqual([]);
  },
);

/** A node whose plain names are of two backends, and which has no others. */
const mixed: Tools = {
  ...relinked("iptables", "nft"),
  ...relinked("ip6tables", "legacy"),
};

const mixedPods: readonly {
  mode: string;
  prevResult: readonly Family[];
  error: RegExp | undefined;
}[] = [
  { mode: "auto", prevResult: ["ipv4"], error: undefined },
  { mode: "auto", prevResult: ["ipv6"], error: undefined },
  { mode: "auto", prevResult: families, error: /ip6tables is legacy.*iptables is nft/ },
  { mode: "plain", prevResult: ["ipv4"], error: undefined },
  { mode: "plain", prevResult: families, error: /iptables is nft and ip6tables is legacy/ },
  { mode: "nft", prevResult: families, error: /of backend nft for ipv6 .*: ip6tables is legacy/ },
];

test.concurrent.for(mixedPods)(
  "ADD to a pod of $prevResult with plain names of two backends, in mode $mode",
  async ({ mode, prevResult, error }, { node }) => {
    node.tools.install(mixed);

    const added = await node.call("ADD", confFor(mode, prevResult));

    const { msg = "", details = "", code } = added.exitCode === 0 ? {} : JSON.parse(added.stdout);
    if (error === undefined) expect([added.exitCode, msg, details]).toStrictEqual([0, "", ""]);
    else expect([code, `${msg}; ${details}`]).toStrictEqual([101, expect.stringMatching(error)]);
    const names = [
      nameOf({ backend: "nft", family: "ipv4" }),
      nameOf({ backend: "legacy", family: "ipv6" }),
    ];
    const here = prevResult.map((family) => names[families.indexOf(family)]);
    expect(await held(node.pod)).toStrictEqual(error === undefined ? here : []);
  },
);

test.concurrent("ADD says so when the plain iptables gives no answer to --version", async ({
  node,
}) => {
  const silent = { script: "exec sleep 60" };
  node.tools.install(Object.fromEntries(namesOf("").map((name) => [name, silent])));

  const added = await node.call("ADD", confFor("plain", ["ipv4"]));

  expect(JSON.parse(added.stdout)).toMatchObject({
    code: 11,
    msg: expect.stringMatching(
      "iptables gave no answer to --version in 2 s, so its backend is not known",
    ),
  });
  expect(await held(node.pod)).toStrictEqual([]);
});

test.concurrent("ADD goes by the programs that tell their backend when the plain ones give no answer", async ({
  node,
}) => {
  const silent = { script: "exec sleep 60" };
  node.tools.install({
    ...Object.fromEntries(namesOf("").map((name) => [name, silent])),
    ...realOnes(namesOf("-nft")),
  });

  const added = await node.call("ADD", confFor("nft", ["ipv4"]));

  expect(added.exitCode).toBe(0);
  const said = expect.stringMatching("no answer to --version");
  expect(logLines(added)).toMatchObject([
    { level: "warn", backend: "legacy", family: "ipv4", said },
    { level: "warn", backend: "legacy", family: "ipv6", said },
    { level: "info", msg: "done" },
  ]);
});

/** The machine's own programs of a backend under the plain names. */
function relinked(prefix: string, backend: string): Tools {
  const version = backend === "nft" ? "v1.8.9 (nf_tables)" : "v1.8.9 (legacy)";
  return Object.fromEntries(
    ["restore", "save"].map((verb) => {
      const real = { link: `${prefix}-${backend}-${verb}` };
      return [`${prefix}-${verb}`, versioned(`${prefix}-${verb} ${version}`, real)];
    }),
  );
}

function confFor(mode: string, prevResult: readonly Family[]) {
  return {
    ...confOf({
      linkerd: { ...linkerd, "iptables-mode": mode },
      addresses: prevResult.map((family) => addressOf[family]),
    }),
    sluice: { "timeout-seconds": 60 },
  };
}

function furnish(netns: LabNetns, lines: readonly string[]): void {
  for (const line of lines) netns.run("ip", line.split(" "));
}

/** The tables that hold something of ours. */
async function held(netns: LabNetns): Promise<string[]> {
  const tables = await readAll(netns);
  return everyTable.map(nameOf).filter((name) => tables.get(name)?.own.length !== 0);
}
