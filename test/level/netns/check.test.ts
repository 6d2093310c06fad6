// CHECK on every starting state, before ADD: each drift by its kind, with the line expected and the line found. What it
// compares with is the attachment's record, or the conf where there is none; it changes nothing either way.
import { describe, expect } from "vitest";
import { type Backend, backends, families } from "../../../src/netfilter/table.ts";
import {
  inboundJump,
  linkerd,
  loadState,
  outboundJump,
  type Place,
  restore,
  rule,
  type StateName,
  stateNames,
} from "../../lab/states.ts";
import { confOf, kernelState, stateConf, test } from "./level.ts";

const noJump = {
  inbound: `missing-jump (ipv4 nat PREROUTING): expected ${inboundJump}; found nothing`,
  outbound: `missing-jump (ipv4 nat OUTPUT): expected ${outboundJump}; found nothing`,
};
const noChain = {
  inbound:
    "missing-chain (ipv4 nat PROXY_INIT_REDIRECT): expected :PROXY_INIT_REDIRECT - [0:0]; found nothing",
  outbound:
    "missing-chain (ipv4 nat PROXY_INIT_OUTPUT): expected :PROXY_INIT_OUTPUT - [0:0]; found nothing",
};
const noOutboundRule = [
  rule.proxyUid,
  rule.loopback,
  rule.excludeOutbound,
  rule.redirectOutbound,
].map((line) => `missing-rule (ipv4 nat PROXY_INIT_OUTPUT): expected ${line}; found nothing`);
const noInboundRule = [rule.excludeInbound, rule.redirectInbound].map(
  (line) => `missing-rule (ipv4 nat PROXY_INIT_REDIRECT): expected ${line}; found nothing`,
);
const nothing = [noChain.inbound, noJump.inbound, noChain.outbound, noJump.outbound];
const doubled = {
  inbound: `duplicate-jump (ipv4 nat PREROUTING): expected ${inboundJump}; found ${inboundJump}`,
  outbound: `duplicate-jump (ipv4 nat OUTPUT): expected ${outboundJump}; found ${outboundJump}`,
};

/** What CHECK says of an IPv4 pod in each state: inbound first, in each direction the chain before its jump. */
const drifts: Readonly<Record<StateName, readonly string[]>> = {
  "nothing in it": nothing,
  "its rules flushed": nothing,
  "all in order": [],
  "linkerd-init's rules, interrupted": [noJump.outbound],
  "linkerd-init's rules, complete": [],
  "the outbound jump doubled": [doubled.outbound],
  "the inbound jump doubled": [doubled.inbound],
  "a stamped jump beside ours": [
    `duplicate-jump (ipv4 nat OUTPUT): expected ${outboundJump}; found -A OUTPUT -m comment --comment "proxy-init/install-proxy-init-output/1574720803" -j PROXY_INIT_OUTPUT`,
  ],
  "the outbound jump missing": [noJump.outbound],
  "the inbound jump missing": [noJump.inbound],
  "a jump for TCP only": [
    noJump.outbound,
    'extra-rule (ipv4 nat OUTPUT): found -A OUTPUT -p tcp -m comment --comment "sluice/outbound" -j PROXY_INIT_OUTPUT',
  ],
  "a goto in place of a jump": [
    noJump.inbound,
    'extra-rule (ipv4 nat PREROUTING): found -A PREROUTING -m comment --comment "sluice/inbound" -g PROXY_INIT_REDIRECT',
  ],
  "a rule missing": noOutboundRule.slice(0, 1),
  "an extra rule": [
    "extra-rule (ipv4 nat PROXY_INIT_OUTPUT): found -A PROXY_INIT_OUTPUT -p tcp -m tcp --dport 443 -j RETURN",
  ],
  "a rule doubled": [`extra-rule (ipv4 nat PROXY_INIT_REDIRECT): found ${rule.redirectInbound}`],
  "the proxy's exemption behind the redirect": [
    `reordered (ipv4 nat PROXY_INIT_OUTPUT): expected ${rule.proxyUid}; found ${rule.loopback}`,
  ],
  "a rule changed": [
    `missing-rule (ipv4 nat PROXY_INIT_REDIRECT): expected ${rule.redirectInbound}; found nothing`,
    'extra-rule (ipv4 nat PROXY_INIT_REDIRECT): found -A PROXY_INIT_REDIRECT -p tcp -m comment --comment "sluice/redirect-inbound" -j REDIRECT --to-ports 4999',
  ],
  "one of our chains missing": [noChain.outbound, noJump.outbound],
  "chains empty": [...noInboundRule, ...noOutboundRule],
  "chains without jumps": [noJump.inbound, noJump.outbound],
  "chains empty and without jumps": [
    ...noInboundRule,
    noJump.inbound,
    ...noOutboundRule,
    noJump.outbound,
  ],
  "one chain jumped to, the other filled": [...noInboundRule, noJump.outbound],
  "foreign rules around ours": [],
  "foreign rules between doubled jumps": [doubled.inbound, doubled.outbound],
  "foreign rules only": nothing,
  "a foreign chain that jumps to ours": [],
  "a foreign rule that takes the traffic ahead of the jump": [
    `shadowed-jump (ipv4 nat OUTPUT): expected ${outboundJump}; found -A OUTPUT -p tcp -j ACCEPT`,
  ],
  "a foreign chain that takes the traffic ahead of the jump": [
    `shadowed-jump (ipv4 nat PREROUTING): expected ${inboundJump}; found -A PREROUTING -j FOREIGN`,
  ],
};

describe.for(backends.map((backend) => ({ backend })))("over $backend", ({ backend }) => {
  test.for(stateNames)(
    "CHECK names every drift, without a record and with one, when both families hold %s",
    (state, { attachment }) => {
      const { netns, call } = attachment;
      const conf = stateConf(backend, ...families);
      const expected = answerTo(backend, ...inBoth(drifts[state]));
      const load = (name: StateName) => {
        for (const family of families) loadState({ netns, backend, family }, name);
      };

      load(state);
      const found = kernelState(netns);
      expect(call("CHECK", conf)).toMatchObject(expected);
      expect(kernelState(netns)).toBe(found);

      call("ADD", conf);
      load(state === "nothing in it" ? "its rules flushed" : state);
      // The record alone is what counts: this conf would make other rules.
      const other = confOf({ linkerd: { ...linkerd, "proxy-uid": 1, "iptables-mode": backend } });
      const damaged = kernelState(netns);
      expect(call("CHECK", other)).toMatchObject(expected);
      expect(kernelState(netns)).toBe(damaged);
    },
  );

  test.for([
    { good: "ipv4", bad: "ipv6" },
    { good: "ipv6", bad: "ipv4" },
  ] as const)(
    "CHECK names the $bad drift alone when $good is in order",
    ({ good, bad }, { attachment }) => {
      const { netns, call } = attachment;
      loadState({ netns, backend, family: good }, "all in order");
      loadState({ netns, backend, family: bad }, "linkerd-init's rules, interrupted");

      const lines = [noJump.outbound.replace("ipv4", bad)];
      expect(call("CHECK", stateConf(backend, ...families))).toMatchObject(
        answerTo(backend, ...lines),
      );
    },
  );

  test("CHECK names the other backend when it holds our chains as well", ({ attachment }) => {
    const { netns, call } = attachment;
    const conf = stateConf(backend, ...families);
    const other = otherThan(backend);
    call("ADD", conf);
    for (const family of families) loadState({ netns, backend: other, family }, "all in order");

    expect(call("CHECK", conf)).toMatchObject(answerTo(backend, ...inBoth(otherHolds(other))));
  });

  test("CHECK names the other backend when it alone holds our chains, or part of them", ({
    attachment,
  }) => {
    const { netns, call } = attachment;
    const conf = stateConf(backend, ...families);
    const other = otherThan(backend);
    loadState({ netns, backend: other, family: "ipv4" }, "all in order");
    loadState({ netns, backend: other, family: "ipv6" }, "chains empty and without jumps");

    const lines = [...inBoth(nothing), ...inBoth(otherHolds(other))];
    expect(call("CHECK", conf)).toMatchObject(answerTo(backend, ...lines));
  });

  test("CHECK names the other backend when someone else redirects TCP there", ({ attachment }) => {
    const { netns, call } = attachment;
    const other = otherThan(backend);
    const conf = stateConf(backend, "ipv4");
    call("ADD", conf);
    const redirect = "-A OUTPUT -p tcp -m tcp --dport 80 -j REDIRECT --to-ports 15001";
    restore({ netns, backend: other, family: "ipv4" }, `*nat\n${redirect}\nCOMMIT\n`);

    const line = `other-backend (ipv4 nat): found a redirect of someone else's in ${other}: ${redirect}`;
    expect(call("CHECK", conf)).toMatchObject(answerTo(backend, line));
  });

  test("CHECK is silent when the other backend holds foreign rules that leave TCP alone", ({
    attachment,
  }) => {
    const { netns, call } = attachment;
    const conf = stateConf(backend, "ipv4");
    call("ADD", conf);
    loadState({ netns, backend: otherThan(backend), family: "ipv4" }, "foreign rules only");

    expect(call("CHECK", conf)).toMatchObject(answerTo(backend));
  });

  test("CHECK names each drift when there are several in one chain", ({ attachment }) => {
    const { netns, call } = attachment;
    const place: Place = { netns, backend, family: "ipv4" };
    const conf = stateConf(backend, "ipv4");
    call("ADD", conf);
    const damage = [
      `-D${rule.loopback.slice(2)}`,
      `-D${rule.redirectOutbound.slice(2)}`,
      `-I${rule.redirectOutbound.slice(2)}`,
      "-A PROXY_INIT_OUTPUT -p udp -j RETURN",
      "-I OUTPUT -j ACCEPT",
      outboundJump,
    ];
    restore(place, ["*nat", ...damage, "COMMIT\n"].join("\n"), "--noflush");

    expect(call("CHECK", conf)).toMatchObject(
      answerTo(
        backend,
        `missing-rule (ipv4 nat PROXY_INIT_OUTPUT): expected ${rule.loopback}; found nothing`,
        "extra-rule (ipv4 nat PROXY_INIT_OUTPUT): found -A PROXY_INIT_OUTPUT -p udp -j RETURN",
        `reordered (ipv4 nat PROXY_INIT_OUTPUT): expected ${rule.proxyUid}; found ${rule.redirectOutbound}`,
        doubled.outbound,
        `shadowed-jump (ipv4 nat OUTPUT): expected ${outboundJump}; found -A OUTPUT -j ACCEPT`,
      ),
    );
  });

  test("CHECK compares with the conf when the record is about another netns", ({
    attachment,
    other,
  }) => {
    const { netns, call } = attachment;
    const elsewhere = confOf({ linkerd: { ...linkerd, "proxy-uid": 1, "iptables-mode": backend } });
    call("ADD", elsewhere, { NETNS: other.path });
    loadState({ netns, backend, family: "ipv4" }, "all in order");

    expect(call("CHECK", stateConf(backend, "ipv4"))).toMatchObject(answerTo(backend));
  });
});

test("CHECK fails as unverifiable when rules of nft's own hide the table", ({ attachment }) => {
  const { netns, call } = attachment;
  const conf = stateConf("nft", "ipv4");
  call("ADD", conf);
  netns.run("nft", ["add rule ip nat OUTPUT meta mark set 7 tcp dport 80 redirect to :99"]);
  const lines = ["unverifiable (ipv4 nat): found Table `nat' is incompatible, use 'nft' tool."];

  expect(call("CHECK", conf)).toMatchObject(answerTo("nft", ...lines));
});

/** CHECK's whole answer to these drifts of container c1; without any it says nothing. */
function answerTo(backend: Backend, ...lines: readonly string[]) {
  if (lines.length === 0) return { exitCode: 0, stdout: "" };
  const count = lines.length === 1 ? "1 drift" : `${lines.length} drifts`;
  const error = {
    cniVersion: "1.1.0",
    code: 100,
    msg: `container c1 is not redirected as intended: ${count} (${backend})`,
    details: lines.join("\n"),
  };
  return { exitCode: 1, stdout: JSON.stringify(error) };
}

function inBoth(lines: readonly string[]): string[] {
  return families.flatMap((family) => lines.map((line) => line.replace("(ipv4", `(${family}`)));
}

function otherThan(backend: Backend): Backend {
  return backend === "nft" ? "legacy" : "nft";
}

function otherHolds(backend: Backend): string[] {
  return ["PROXY_INIT_REDIRECT", "PROXY_INIT_OUTPUT"].map(
    (chain) => `other-backend (ipv4 nat): found own chain ${chain} in ${backend} as well`,
  );
}
