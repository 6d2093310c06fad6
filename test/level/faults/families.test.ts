// Which families a pod has, and what becomes of them when one cannot be set up: both, or none and an error.
import { describe, expect } from "vitest";
import { backends, type Family, families } from "../../../src/netfilter/table.ts";
import { namesOf, realOnes, realTools, says } from "../../lab/fake-tools.ts";
import type { LabNetns } from "../../lab/netns.ts";
import { complete, linkerd, loadState } from "../../lab/states.ts";
import { addressOf, confOf, stateConf } from "../netns/level.ts";
import { errorJson, logLines, test } from "./node.ts";
import { everyTable, nameOf, readAll } from "./run/tables.ts";

/** The conf of a pod whose prevResult names no address. */
const unnamed = { ...confOf(), prevResult: { cniVersion: "1.1.0" } };

/** What decides: addresses of prevResult as well as those in the netns; IPv4 is redirected in any case. */
const pods: readonly {
  name: string;
  prevResult: readonly Family[];
  inside: readonly Family[];
  ipv6: boolean;
  families: readonly Family[];
}[] = [
  { name: "prevResult has IPv4", prevResult: ["ipv4"], inside: [], ipv6: true, families: ["ipv4"] },
  {
    name: "prevResult has IPv6",
    prevResult: ["ipv6"],
    inside: [],
    ipv6: true,
    families: ["ipv4", "ipv6"],
  },
  {
    name: "prevResult has both",
    prevResult: ["ipv4", "ipv6"],
    inside: [],
    ipv6: true,
    families: ["ipv4", "ipv6"],
  },
  {
    name: "prevResult has both, and ipv6 is off",
    prevResult: ["ipv4", "ipv6"],
    inside: [],
    ipv6: false,
    families: ["ipv4"],
  },
  {
    name: "prevResult has IPv4, and the netns both",
    prevResult: ["ipv4"],
    inside: ["ipv4", "ipv6"],
    ipv6: true,
    families: ["ipv4", "ipv6"],
  },
  {
    name: "prevResult has none, and the netns IPv6 (C54)",
    prevResult: [],
    inside: ["ipv6"],
    ipv6: true,
    families: ["ipv4", "ipv6"],
  },
  {
    name: "prevResult has none, and the netns both",
    prevResult: [],
    inside: ["ipv4", "ipv6"],
    ipv6: true,
    families: ["ipv4", "ipv6"],
  },
];

describe.for(backends)("over %s", (backend) => {
  test.concurrent.for(pods)("ADD redirects $families when $name", async (row, { node }) => {
    giveAddresses(node.pod, row.inside);
    const named = confOf({ addresses: row.prevResult.map((family) => addressOf[family]) });
    const conf = {
      ...(row.prevResult.length === 0 ? unnamed : named),
      linkerd: { ...linkerd, "iptables-mode": backend, ipv6: row.ipv6 },
    };

    const answer = await node.call("ADD", conf);

    expect(answer.exitCode).toBe(0);
    expect(logLines(answer).at(-1)).toMatchObject({ changed: row.families });
    expect(await held(node.pod)).toStrictEqual(
      row.families.map((family) => nameOf({ backend, family })),
    );
  });

  test.concurrent("ADD needs no ip6tables when the pod has no IPv6 address and ipv6 is on (C52)", async ({
    node,
  }) => {
    node.tools.install(realOnes(namesOf(`-${backend}`, ["iptables"])));

    const answer = await node.call("ADD", stateConf(backend, "ipv4"));

    expect(answer.exitCode).toBe(0);
  });

  test.concurrent("ADD fails before it writes when the pod has an IPv6 address and there is no ip6tables", async ({
    node,
  }) => {
    node.tools.install(realOnes(namesOf(`-${backend}`, ["iptables"])));

    const answer = await node.call("ADD", stateConf(backend, ...families));

    const message = `no iptables programs of backend ${backend} for ipv6 on the node`;
    const details = "install iptables 1.8 or later, or set linkerd.iptables-mode to what is there";
    expect(answer.stdout).toBe(errorJson(101, message, details));
    expect(await held(node.pod)).toStrictEqual([]);
  });

  const table = "ip6tables-restore v1.8.7 (legacy): can't initialize ip6tables table `nat'";
  const said = `${table}: Table does not exist (do you need to insmod?)`;
  const refused = says({
    stderr: `${said}\nPerhaps ip6tables or your kernel needs to be upgraded.\n`,
    exitCode: 3,
  });
  const where = `/usr/sbin/ip6tables-${backend}-restore (${backend}, ipv6, table nat)`;
  const noTable = errorJson(
    101,
    `${where} failed: ${said}`,
    "the kernel has no nat table for this backend: modprobe iptable_nat (ip6table_nat), or use nft",
  );

  test.concurrent("ADD fails and takes IPv4 back when the kernel has no table for IPv6 (C51, C57)", async ({
    node,
  }) => {
    node.tools.install({ ...realTools, [`ip6tables-${backend}-restore`]: refused });

    const answer = await node.call("ADD", stateConf(backend, ...families));

    expect(answer.stdout).toBe(noTable);
    expect(await held(node.pod)).toStrictEqual([]);
    expect(node.stateFile("attachments/lab,c1,eth0.json")).toBeUndefined();
  });

  test.concurrent("ADD leaves IPv4 as it was when that had rules before, and IPv6 cannot be set up", async ({
    node,
  }) => {
    loadState({ netns: node.pod, backend, family: "ipv4" }, "the outbound jump missing");
    const before = await readAll(node.pod);
    node.tools.install({ ...realTools, [`ip6tables-${backend}-restore`]: refused });

    const answer = await node.call("ADD", stateConf(backend, ...families));

    expect(answer.stdout).toBe(noTable);
    expect(await readAll(node.pod)).toStrictEqual(before);
  });

  test.concurrent("ADD takes IPv4 back when IPv4 was first refused for a moment, and IPv6 for good", async ({
    node,
  }) => {
    const busy = `count=$(grep -c "^\${0##*/} " "$dir/calls")
[ "$count" -gt 1 ] && exec "$real/\${0##*/}" "$@"
echo "Resource temporarily unavailable" >&2; exit 4`;
    const later = `count=$(grep -c "^\${0##*/} " "$dir/calls")
[ "$count" -gt 2 ] && { echo "${said.replace("`", "\\`")}" >&2; exit 3; }
echo "Resource temporarily unavailable" >&2; exit 4`;
    node.tools.install({
      ...realTools,
      [`iptables-${backend}-restore`]: { script: busy },
      [`ip6tables-${backend}-restore`]: { script: later },
    });

    const answer = await node.call("ADD", stateConf(backend, ...families));

    expect(answer.stdout).toBe(noTable);
    expect(await held(node.pod)).toStrictEqual([]);
  });
});

/** Netns that cannot be entered: a family that is taken for absent would pass the proxy by. */
const looks: readonly { name: string; nsenter: string; code: number; reason: string }[] = [
  {
    name: "cannot be entered",
    nsenter: 'echo "nsenter: no way in" >&2; exit 1',
    code: 102,
    reason: "entering the netns failed with exit status 1: nsenter: no way in",
  },
  {
    name: "cannot be entered in time",
    nsenter: "exec sleep 60",
    code: 11,
    reason:
      "/usr/sbin/iptables-legacy-save (legacy, ipv4, table nat) and /usr/sbin/iptables-nft-restore (nft, ipv4, table nat) did not end within the deadline; run it by hand to see what it waits for",
  },
];

test.concurrent.for(looks)(
  "ADD fails when prevResult has no address and the netns $name",
  async ({ nsenter, code, reason }, { node }) => {
    const conf = {
      ...unnamed,
      linkerd: { ...linkerd, "iptables-mode": "nft", ipv6: false },
      sluice: { "timeout-seconds": 4 },
    };
    const program = `printf '#!/bin/sh\\n%s\\n' '${nsenter}' >${node.tools.dir}/nsenter
chmod +x ${node.tools.dir}/nsenter
mount --bind ${node.tools.dir}/nsenter /usr/bin/nsenter`;

    const answer = await node.call("ADD", conf, { setup: program });

    const message = `could not work in the netns of container c1: ${reason}`;
    const details =
      "nothing of ours is left half-way; a family's rules are loaded all or not at all";
    expect(answer.stdout).toBe(errorJson(code, message, details));
  },
);

/** The tables that hold all of ours; none may hold a part. */
async function held(netns: LabNetns): Promise<string[]> {
  const tables = await readAll(netns);
  const names = everyTable.map(nameOf).filter((name) => tables.get(name)?.own.length !== 0);
  for (const name of names) expect(tables.get(name)?.own).toStrictEqual(complete);
  return names;
}

// On lo: it is there, and what is global on it counts as well as on any other.
function giveAddresses(netns: LabNetns, of: readonly Family[]): void {
  for (const family of of) netns.run("ip", ["address", "add", addressOf[family], "dev", "lo"]);
}
