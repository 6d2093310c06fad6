// CHECK over the fakes: names each drift from what ADD intended, and changes nothing.
import { describe, expect, test } from "vitest";
import type { Backend } from "../../src/netfilter/table.ts";
import { cni, failed, loadState, saved, succeeded, withLinkerd } from "../fake/call.ts";
import { makeNetns, makeWorld, netnsPath, type World } from "../fake/world.ts";
import { inboundJump, outboundJump, rule, type StateName, stateNames } from "../lab/states.ts";

const families = ["ipv4", "ipv6"] as const;

const expectedThere = (kind: string, chain: string, line: string) =>
  `${kind} (FAMILY nat ${chain}): expected ${line}; found nothing`;
const missingRule = (line: string) => expectedThere("missing-rule", chainOf(line), line);
const missingJump = (line: string) => expectedThere("missing-jump", chainOf(line), line);
const missingChain = (chain: string) => expectedThere("missing-chain", chain, `:${chain} - [0:0]`);
const extra = (line: string) => `extra-rule (FAMILY nat ${chainOf(line)}): found ${line}`;
const differing = (kind: string, line: string, found: string) =>
  `${kind} (FAMILY nat ${chainOf(line)}): expected ${line}; found ${found}`;

function chainOf(line: string): string {
  return line.split(" ")[1] ?? "";
}

const [inbound, outbound] = ["PROXY_INIT_REDIRECT", "PROXY_INIT_OUTPUT"];
const inboundRules = [rule.excludeInbound, rule.redirectInbound].map(missingRule);
const outboundRules = [
  rule.proxyUid,
  rule.loopback,
  rule.excludeOutbound,
  rule.redirectOutbound,
].map(missingRule);
const nothing = [
  missingChain(inbound),
  missingJump(inboundJump),
  missingChain(outbound),
  missingJump(outboundJump),
];
const stamped = outboundJump.replace(
  "sluice/outbound",
  "proxy-init/install-proxy-init-output/1574720803",
);
const tcpOnly = outboundJump.replace("-A OUTPUT", "-A OUTPUT -p tcp");
const goto = inboundJump.replace("-j PROXY", "-g PROXY");

/** By state: the drift in each family. No state may be without a line here. */
const drifts: Readonly<Record<StateName, string[]>> = {
  "nothing in it": nothing,
  "its rules flushed": nothing,
  "all in order": [],
  "linkerd-init's rules, interrupted": [missingJump(outboundJump)],
  "linkerd-init's rules, complete": [],
  "the outbound jump doubled": [differing("duplicate-jump", outboundJump, outboundJump)],
  "the inbound jump doubled": [differing("duplicate-jump", inboundJump, inboundJump)],
  "a stamped jump beside ours": [differing("duplicate-jump", outboundJump, stamped)],
  "the outbound jump missing": [missingJump(outboundJump)],
  "the inbound jump missing": [missingJump(inboundJump)],
  "a jump for TCP only": [missingJump(outboundJump), extra(tcpOnly)],
  "a goto in place of a jump": [missingJump(inboundJump), extra(goto)],
  "a rule missing": [missingRule(rule.proxyUid)],
  "an extra rule": [extra("-A PROXY_INIT_OUTPUT -p tcp -m tcp --dport 443 -j RETURN")],
  "a rule doubled": [extra(rule.redirectInbound)],
  "the proxy's exemption behind the redirect": [
    differing("reordered", rule.proxyUid, rule.loopback),
  ],
  "a rule changed": [
    missingRule(rule.redirectInbound),
    extra(rule.redirectInbound.replace("4143", "4999")),
  ],
  "one of our chains missing": [missingChain(outbound), missingJump(outboundJump)],
  "chains empty": [...inboundRules, ...outboundRules],
  "chains without jumps": [missingJump(inboundJump), missingJump(outboundJump)],
  "chains empty and without jumps": [
    ...inboundRules,
    missingJump(inboundJump),
    ...outboundRules,
    missingJump(outboundJump),
  ],
  "one chain jumped to, the other filled": [...inboundRules, missingJump(outboundJump)],
  "foreign rules around ours": [],
  "foreign rules between doubled jumps": [
    differing("duplicate-jump", inboundJump, inboundJump),
    differing("duplicate-jump", outboundJump, outboundJump),
  ],
  "foreign rules only": nothing,
  "a foreign chain that jumps to ours": [],
  "a foreign rule that takes the traffic ahead of the jump": [
    differing("shadowed-jump", outboundJump, "-A OUTPUT -p tcp -j ACCEPT"),
  ],
  "a foreign chain that takes the traffic ahead of the jump": [
    differing("shadowed-jump", inboundJump, "-A PREROUTING -j FOREIGN"),
  ],
};

function drifted(lines: readonly string[], backend: Backend): ReturnType<typeof failed> {
  const all = families.flatMap((family) => lines.map((line) => line.replaceAll("FAMILY", family)));
  return lines.length === 0 ? succeeded("") : driftedAs(all, backend);
}

function driftedAs(lines: readonly string[], backend: Backend): ReturnType<typeof failed> {
  const count = lines.length === 1 ? "1 drift" : `${lines.length} drifts`;
  return failed(
    100,
    `pod emoji/web is not redirected as intended: ${count} (${backend})`,
    lines.join("\n"),
  );
}

describe.each(["nft", "legacy"] as const)("through %s", (backend) => {
  const through = withLinkerd({ "iptables-mode": backend });

  test.each(stateNames)("CHECK names the drift when ADD's netns has: %s", async (name) => {
    const world = makeWorld();
    await cni(world, "ADD", through);
    loadState(world, backend, name);
    world.iptables.written.length = 0;
    const before = families.map((family) => saved(world, backend, family));
    expect(await cni(world, "CHECK", through)).toEqual(drifted(drifts[name], backend));
    expect(world.iptables.written).toEqual([]);
    expect(families.map((family) => saved(world, backend, family))).toEqual(before);
    expect(world.open).toEqual(new Set());
  });
});

const healthy = async () => {
  const world = makeWorld();
  await cni(world, "ADD");
  world.iptables.written.length = 0;
  world.lines.length = 0;
  return world;
};
const told = {
  command: "CHECK",
  containerId: "c0ffee",
  ifName: "eth0",
  pod: { namespace: "emoji", name: "web" },
  families,
  backend: "nft",
  execs: 1,
  durationMs: 0,
};
const unseen = {
  level: "debug",
  message: "nft is not on the node: chains of nft's own are not seen",
};

test("CHECK says nothing, and logs one line, when all is in order", async () => {
  const world = await healthy();
  expect(await cni(world, "CHECK")).toEqual(succeeded(""));
  expect(world.lines).toEqual([unseen, { level: "info", message: "done", ...told }]);
});

test("CHECK logs its error with the drift when there is some", async () => {
  const world = await healthy();
  world.iptables.load(netnsPath, "iptables-nft", "*nat\nCOMMIT\n");
  const lines = nothing.map((line) => line.replaceAll("FAMILY", "ipv4"));
  expect(await cni(world, "CHECK")).toEqual(driftedAs(lines, "nft"));
  const message = "pod emoji/web is not redirected as intended: 4 drifts (nft)";
  expect(world.lines).toEqual([
    unseen,
    { level: "error", message, ...told, code: 100, details: lines.join("\n"), err: undefined },
  ]);
});

test("CHECK goes by the record, not by the conf as it is now", async () => {
  const world = await healthy();
  const change = withLinkerd({ "proxy-uid": 3000, ipv6: false, "iptables-mode": "legacy" });
  expect(await cni(world, "CHECK", change)).toEqual(succeeded(""));
});

const noRecord: [when: string, prepare: (world: World) => void][] = [
  ["there is none", (world) => world.store.records.clear()],
  ["it is about another netns", (world) => world.netns.set(netnsPath, makeNetns(netnsPath, 2))],
];

test.each(noRecord)(
  "CHECK goes by the conf, and warns, when of the record %s",
  async (_, prepare) => {
    const world = await healthy();
    prepare(world);
    const warning = "no record of this attachment; checking against the conf";
    expect(await cni(world, "CHECK")).toEqual(succeeded(""));
    expect(world.lines).toMatchObject([
      { level: "warn", message: warning, containerId: "c0ffee" },
      unseen,
      { message: "done", backend: "nft" },
    ]);
    expect(await cni(world, "CHECK", withLinkerd({ "proxy-uid": 3000 }))).toEqual(
      drifted([missingRule(rule.proxyUid.replace("2102", "3000")), extra(rule.proxyUid)], "nft"),
    );
  },
);

test("CHECK tells own chains and foreign redirects of the other backend", async () => {
  const world = await healthy();
  loadState(world, "legacy", "chains empty and without jumps");
  const foreign = "-A OUTPUT -p tcp -j REDIRECT --to-ports 15001";
  const text = `*nat\n:OUTPUT ACCEPT [0:0]\n${foreign}\nCOMMIT\n`;
  world.iptables.load(netnsPath, "iptables-legacy", text);
  expect(await cni(world, "CHECK")).toEqual(
    driftedAs(
      [
        `other-backend (ipv4 nat): found a redirect of someone else's in legacy: ${foreign}`,
        `other-backend (ipv6 nat): found own chain ${inbound} in legacy as well`,
        `other-backend (ipv6 nat): found own chain ${outbound} in legacy as well`,
      ],
      "nft",
    ),
  );
});

test("CHECK tells that it cannot tell when native rules stand in the table", async () => {
  const world = await healthy();
  const native = "Table `nat' is incompatible, use 'nft' tool.";
  world.iptables.events.push({ program: "iptables-nft-save", fails: { stdout: `# ${native}\n` } });
  expect(await cni(world, "CHECK")).toEqual(
    driftedAs([`unverifiable (ipv4 nat): found ${native}`], "nft"),
  );
});

const unread: [when: string, fails: object, said: string][] = [
  ["save fails", { status: 1, stderr: "iptables-nft-save: oh no" }, "iptables-nft-save: oh no"],
  [
    "save prints nonsense",
    { stdout: "x\n" },
    'iptables-save printed a line outside of any table: "x"',
  ],
];

test.each(unread)("CHECK does not take it for drift when %s", async (_, fails, said) => {
  const world = await healthy();
  world.iptables.events.push({ program: "iptables-nft-save", fails });
  expect(await cni(world, "CHECK")).toEqual(
    failed(
      11,
      `/sbin/iptables-nft-save (nft, ipv4) could not show the nat table: ${said}`,
      "whether the redirect is in place is not known",
    ),
  );
});

test("CHECK passes over the other backend when that does not work here", async () => {
  const world = await healthy();
  loadState(world, "legacy", "nothing in it");
  world.iptables.load(netnsPath, "iptables-legacy", "*nat\nCOMMIT\n");
  world.iptables.events.push({ program: "iptables-legacy-save", fails: { status: 3 } });
  expect(await cni(world, "CHECK")).toEqual(succeeded(""));
});

test("CHECK expects nothing of a pod that is left alone", async () => {
  const world = makeWorld();
  const conf = { kubernetes: { kubeconfig: "/k" }, sluice: { "exclude-namespaces": ["emoji"] } };
  expect(await cni(world, "CHECK", { conf })).toEqual(succeeded(""));
  expect(world.asked).toEqual([]);
});

test("CHECK tells a kernel setting that was changed", async () => {
  const world = makeWorld();
  const annotations = {
    "linkerd.io/proxy-version": "x",
    "config.linkerd.io/close-wait-timeout": "1h",
  };
  const runtimeConfig = { "io.kubernetes.cri.pod-annotations": annotations };
  const change = { conf: { kubernetes: {}, runtimeConfig } };
  await cni(world, "ADD", change);
  expect(await cni(world, "CHECK", change)).toEqual(succeeded(""));
  const name = "net.netfilter.nf_conntrack_tcp_timeout_close_wait";
  world.sysctls.set(`/proc/sys/${name.replaceAll(".", "/")}`, "60");
  expect(await cni(world, "CHECK", change)).toEqual(
    driftedAs([`changed-sysctl (${name}): expected 3600; found 60`], "nft"),
  );
});
