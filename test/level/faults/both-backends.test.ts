// Rules in both backends at once: both are live, so one set has to go, and never the last one first. What others have in
// the other backend is told and left alone.
import { describe, expect } from "vitest";
import { type Backend, backends, type Family, families } from "../../../src/netfilter/table.ts";
import { realTools, says } from "../../lab/fake-tools.ts";
import type { LabNetns } from "../../lab/netns.ts";
import { complete, loadState, restore, type StateName, save } from "../../lab/states.ts";
import { addressOf, confOf, stateConf } from "../netns/level.ts";
import { errorJson, logLines, requireRoot, test } from "./node.ts";
import { everyTable, load, nameOf, readAll, runInside } from "./run/tables.ts";
import { makeTraffic, proxied } from "./run/traffic.ts";

const otherThan: Readonly<Record<Backend, Backend>> = { nft: "legacy", legacy: "nft" };

/** What the pod's netns holds in the other backend, which nobody sees who looks with one tool only. */
const leftovers: readonly StateName[] = [
  "linkerd-init's rules, interrupted",
  "linkerd-init's rules, complete",
  "a rule missing",
  "foreign rules between doubled jumps",
];

describe.for(backends.map((backend) => ({ backend, other: otherThan[backend] })))(
  "over $backend",
  ({ backend, other }) => {
    test.for(leftovers)(
      `CHECK tells of ${other}, and ADD keeps to the conf and cleans ${other}, when that holds %s`,
      async (state, { node }) => {
        const conf = stateConf(backend, ...families);
        for (const family of families) {
          loadState({ netns: node.pod, backend: other, family }, state);
        }
        const lines = [
          ...families.flatMap(missing),
          ...families.flatMap((family) => ownIn(family, other)),
        ];
        expect((await node.call("CHECK", conf)).stdout).toBe(drifted(backend, ...lines));

        const answer = await node.call("ADD", conf);

        expect(answer).toMatchObject({ exitCode: 0, stdout: JSON.stringify(conf.prevResult) });
        expect(logLines(answer)).toMatchObject([
          { kept: backend, cleaned: other },
          { backend, changed: families },
        ]);
        await expectOnly(node.pod, backend);
        expect((await node.call("CHECK", conf)).stdout).toBe("");
      },
    );

    test(`ADD cleans ${other} in the one family that has rules there`, async ({ node }) => {
      loadState({ netns: node.pod, backend: other, family: "ipv6" }, "all in order");

      const answer = await node.call("ADD", stateConf(backend, ...families));

      expect(answer.exitCode).toBe(0);
      await expectOnly(node.pod, backend);
    });

    test(`ADD says so when it cannot look into ${other}`, async ({ node }) => {
      // Where legacy has no table it is not asked.
      loadState({ netns: node.pod, backend: other, family: "ipv4" }, "foreign rules only");
      const said = "Resource temporarily unavailable";
      const save = says({ stderr: `${said}\n`, exitCode: 1 });
      node.tools.install({ ...realTools, [`iptables-${other}-save`]: save });

      const answer = await node.call("ADD", stateConf(backend, "ipv4"));

      expect(answer.exitCode).toBe(0);
      const msg =
        "the other backend's nat table cannot be shown; whether it redirects as well is not known";
      expect(logLines(answer)).toMatchObject([
        { level: "warn", backend: other, family: "ipv4", said, msg },
        { backend, changed: ["ipv4"] },
      ]);
    });

    test(`a stranger's redirect in ${other} is told, and left alone`, async ({ node }) => {
      const redirect = "-A OUTPUT -p tcp -m tcp --dport 80 -j REDIRECT --to-ports 15001";
      const place = { netns: node.pod, backend: other, family: "ipv4" } as const;
      restore(place, `*nat\n${redirect}\nCOMMIT\n`);
      const before = save(place).replaceAll(/^#.*$/gm, "");
      const conf = stateConf(backend, "ipv4");

      const answer = await node.call("ADD", conf);

      expect(answer.exitCode).toBe(0);
      expect(logLines(answer)).toMatchObject([
        {
          level: "warn",
          backend: other,
          family: "ipv4",
          rules: [redirect],
          msg: "rules of someone else's redirect traffic in the other backend; which of the two wins is not ours to decide",
        },
        { msg: "done" },
      ]);
      expect(save(place).replaceAll(/^#.*$/gm, "")).toBe(before);
      const { stdout } = await node.call("CHECK", conf);
      expect(stdout).toBe(
        drifted(
          backend,
          `other-backend (ipv4 nat): found a redirect of someone else's in ${other}: ${redirect}`,
        ),
      );
    });
  },
);

/** ADDs that move a pod's rules from one backend to the other: the way there is what counts. */
const moves: readonly {
  name: string;
  mode: string;
  from: Backend;
  state: StateName;
  to: Backend;
}[] = [
  { name: "the conf says nft", mode: "nft", from: "legacy", state: "all in order", to: "nft" },
  {
    name: "the conf says legacy",
    mode: "legacy",
    from: "nft",
    state: "all in order",
    to: "legacy",
  },
  {
    name: "nobody says, and linkerd-init's rules are in legacy",
    mode: "auto",
    from: "legacy",
    state: "linkerd-init's rules, complete",
    to: "legacy",
  },
];

test.for(moves)(
  "no connection passes the proxy by while ADD moves rules: $name",
  async ({ mode, from, state, to }, { node, skip }) => {
    requireRoot(skip);
    const traffic = await makeTraffic();
    try {
      const conf = confOf({
        linkerd: { ...stateConf("nft").linkerd, "iptables-mode": mode },
        addresses: families.map((family) => addressOf[family]),
      });
      const places = families.map((family) => ({ backend: from, family }));
      await load(traffic.pod, places, state);
      traffic.start({ outbound: 1_000, inbound: 250 });
      for (let i = 0; i < 6; i++) {
        await node.call("ADD", conf, { netns: traffic.pod });
        await expectOnly(traffic.pod, to);
        await load(traffic.pod, places, state);
        if (from !== to) await empty(traffic.pod, to);
      }
      const { outbound, inbound } = await traffic.stop();

      expect(Object.keys(outbound.answers)).toStrictEqual([proxied.outbound]);
      expect(Object.keys(inbound.answers)).toStrictEqual([proxied.inbound]);
      expect(outbound.answers[proxied.outbound]).toBeGreaterThan(500);
    } finally {
      traffic.remove();
    }
  },
);

// Else the tests above would prove nothing.
test("connections that pass the proxy by are seen when rules are away for an instant", async ({
  skip,
}) => {
  requireRoot(skip);
  const traffic = await makeTraffic();
  try {
    const place = { netns: traffic.pod, backend: "nft", family: "ipv4" } as const;
    loadState(place, "all in order");
    loadState({ ...place, family: "ipv6" }, "all in order");
    traffic.start({ outbound: 1_000, inbound: 250 });
    for (let i = 0; i < 20; i++) {
      restore(place, "*nat\n-F OUTPUT\nCOMMIT\n", "--noflush");
      loadState(place, "all in order");
    }
    const { outbound, inbound } = await traffic.stop();

    expect(Object.keys(outbound.answers).toSorted()).toStrictEqual(["peer 8080", "pod 4140"]);
    expect(Object.keys(inbound.answers)).toStrictEqual(["pod 4143"]);
  } finally {
    traffic.remove();
  }
});

/** Ours in this backend, whole, and nothing of ours in the other. */
async function expectOnly(netns: LabNetns, backend: Backend): Promise<void> {
  const tables = [...(await readAll(netns))].map(([name, { own }]) => [name, own]);
  const expected = everyTable.map((which) => {
    return [nameOf(which), which.backend === backend ? complete : []];
  });
  expect(tables).toStrictEqual(expected);
}

function missing(family: Family): string[] {
  const chains = [
    ["PREROUTING", "PROXY_INIT_REDIRECT", "sluice/inbound"],
    ["OUTPUT", "PROXY_INIT_OUTPUT", "sluice/outbound"],
  ];
  return chains.flatMap(([hook, chain, comment]) => [
    `missing-chain (${family} nat ${chain}): expected :${chain} - [0:0]; found nothing`,
    `missing-jump (${family} nat ${hook}): expected -A ${hook} -m comment --comment "${comment}" -j ${chain}; found nothing`,
  ]);
}

function ownIn(family: Family, backend: Backend): string[] {
  return ["PROXY_INIT_REDIRECT", "PROXY_INIT_OUTPUT"].map(
    (chain) => `other-backend (${family} nat): found own chain ${chain} in ${backend} as well`,
  );
}

function drifted(backend: Backend, ...lines: readonly string[]): string {
  const count = lines.length === 1 ? "1 drift" : `${lines.length} drifts`;
  const message = `container c1 is not redirected as intended: ${count} (${backend})`;
  return errorJson(100, message, lines.join("\n"));
}

/** Takes our rules out of a backend in one go; the other one's are in place. */
async function empty(netns: LabNetns, backend: Backend): Promise<void> {
  const own = ["PROXY_INIT_OUTPUT", "PROXY_INIT_REDIRECT"];
  const lines = [
    "*nat",
    ...own.map((chain) => `:${chain} - [0:0]`),
    ...complete
      .filter((line) => /^-A (OUTPUT|PREROUTING) /.test(line))
      .map((line) => `-D${line.slice(2)}`),
    ...own.map((chain) => `-X ${chain}`),
    "COMMIT\n",
  ];
  const commands = ["iptables", "ip6tables"].map((name) => {
    return `echo "$text" | ${name}-${backend}-restore --noflush`;
  });
  await runInside(netns, `text=$(cat)\n${commands.join("\n")}`, lines.join("\n"));
}
