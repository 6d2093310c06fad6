// ADD from every starting state: it ends with the same rules of ours, whatever was there, and touches nothing else.
import { describe, expect } from "vitest";
import { type Family, families } from "../../../src/netfilter/table.ts";
import type { LabNetns } from "../../lab/netns.ts";
import {
  complete,
  foreignLines,
  inboundJump,
  loadState,
  outboundJump,
  ownLines,
  type Place,
  restore,
  type StateName,
  save,
  stateNames,
} from "../../lab/states.ts";
import {
  addressOf,
  confOf,
  kernelState,
  logLine,
  named,
  places,
  stateConf,
  test,
} from "./level.ts";

/** States with nothing of ours: the first restore does, without a look. */
const bare: readonly StateName[] = ["nothing in it", "its rules flushed", "foreign rules only"];

/** States that need no write: all else is brought to ours. */
const good: readonly StateName[] = [
  "all in order",
  "foreign rules around ours",
  "a foreign chain that jumps to ours",
];

/** How the kernel shows a jump that one connection has taken: proof that our rules count, and so would lose it. */
const oneConnection = {
  nft: /counter packets 1 bytes \d+ jump PROXY_INIT_OUTPUT/,
  legacy: /^\[1:\d+\] -A OUTPUT .* -j PROXY_INIT_OUTPUT$/m,
};

describe.for(places)("over $backend, $family", ({ backend, family }) => {
  test.for(stateNames)(
    "ADD ends with our rules and leaves all else alone when it finds %s",
    (state, { attachment }) => {
      const { netns, call } = attachment;
      const place = { netns, backend, family };
      const conf = stateConf(backend, family);
      loadState(place, state);
      const before = save(place);

      const first = call("ADD", conf);

      expect(first).toMatchObject({ exitCode: 0, stdout: JSON.stringify(conf.prevResult) });
      // Of a pod that has IPv6, IPv4 is redirected as well: it is always possible.
      const other: readonly Family[] = family === "ipv6" ? ["ipv4"] : [];
      const changed = [...other, ...(good.includes(state) ? [] : [family])];
      const execs = good.includes(state) || bare.includes(state) ? 1 : 2;
      expect(logLine(first)).toStrictEqual(told(place, { changed, execs }));
      const after = save(place);
      expect(ownLines(after)).toStrictEqual(complete);
      expect(foreignLines(after)).toStrictEqual(foreignLines(before));
      expect(attachment.records()).toStrictEqual(["lab,c1,eth0.json"]);

      connect(netns, family);
      const held = kernelState(netns);
      expect(held).toMatch(oneConnection[backend]);

      const second = call("ADD", conf);

      expect(second).toMatchObject({ exitCode: 0, stdout: JSON.stringify(conf.prevResult) });
      expect(logLine(second)).toStrictEqual(told(place, { changed: [], execs: 1 }));
      expect(kernelState(netns)).toBe(held);
    },
  );

  test("ADD makes nothing in the other backend, nor in IPv6 where that is not possible", ({
    attachment,
  }) => {
    const { netns, call } = attachment;

    call("ADD", stateConf(backend, family));

    const held = places.filter((place) => save({ ...place, netns }) !== "");
    const expected: Family[] = family === "ipv6" ? ["ipv4", "ipv6"] : ["ipv4"];
    expect(held).toStrictEqual(expected.map((one) => ({ backend, family: one })));
  });
});

describe.for([{ backend: "nft" }, { backend: "legacy" }] as const)(
  "over $backend",
  ({ backend }) => {
    test("ADD writes to one family only when the other is in order", ({ attachment }) => {
      const { netns, call } = attachment;
      const ipv4: Place = { netns, backend, family: "ipv4" };
      const ipv6: Place = { netns, backend, family: "ipv6" };
      const conf = stateConf(backend, "ipv4", "ipv6");
      loadState(ipv4, "all in order");
      loadState(ipv6, "the outbound jump missing");
      restore(ipv4, `*nat\n[2:120] ${outboundJump}\n[3:180] ${inboundJump}\nCOMMIT\n`, "--noflush");
      restore(ipv4, `*nat\n-D OUTPUT 1\n-D PREROUTING 1\nCOMMIT\n`, "--noflush");
      const before = save(ipv4).replaceAll(/^#.*$/gm, "");

      const answer = call("ADD", conf);

      expect(answer).toMatchObject({ exitCode: 0, stdout: JSON.stringify(conf.prevResult) });
      expect(logLine(answer)["changed"]).toStrictEqual(["ipv6"]);
      expect(save(ipv4).replaceAll(/^#.*$/gm, "")).toBe(before);
      expect(ownLines(save(ipv6))).toStrictEqual(complete);
    });
  },
);

describe.for([
  { backend: "nft", other: "legacy" },
  { backend: "legacy", other: "nft" },
] as const)("over $backend", ({ backend, other }) => {
  const leftovers: readonly StateName[] = [
    "all in order",
    "linkerd-init's rules, interrupted",
    "chains empty and without jumps",
    "foreign rules between doubled jumps",
  ];

  test.for(leftovers)(
    `ADD takes our rules out of ${other} when that holds %s`,
    (state, { attachment }) => {
      const { netns, call } = attachment;
      const conf = stateConf(backend, ...families);
      const theirs = families.map((family): Place => ({ netns, backend: other, family }));
      for (const place of theirs) loadState(place, state);
      const foreign = theirs.map((place) => foreignLines(save(place)));

      expect(call("ADD", conf)).toMatchObject({
        exitCode: 0,
        stdout: JSON.stringify(conf.prevResult),
      });
      for (const family of families) {
        expect(ownLines(save({ netns, backend, family }))).toStrictEqual(complete);
        expect(ownLines(save({ netns, backend: other, family }))).toStrictEqual([]);
      }
      expect(theirs.map((place) => foreignLines(save(place)))).toStrictEqual(foreign);
      expect(call("CHECK", conf)).toMatchObject({ exitCode: 0, stdout: "" });
    },
  );

  test.for(leftovers)(
    `ADD keeps to ${backend} when the conf names no backend and that holds %s`,
    (state, { attachment }) => {
      const { netns, call } = attachment;
      const conf = confOf({ addresses: families.map((family) => addressOf[family]) });
      for (const family of families) loadState({ netns, backend, family }, state);

      expect(call("ADD", conf)).toMatchObject({
        exitCode: 0,
        stdout: JSON.stringify(conf.prevResult),
      });
      for (const family of families) {
        expect(ownLines(save({ netns, backend, family }))).toStrictEqual(complete);
        expect(ownLines(save({ netns, backend: other, family }))).toStrictEqual([]);
      }
      expect(call("CHECK", conf)).toMatchObject({ exitCode: 0, stdout: "" });
    },
  );
});

/** Texts that decoding and encoding anew would change. */
const prevResults: readonly { name: string; text: string }[] = [
  {
    name: "has blanks and lines",
    text: '{\n  "cniVersion": "1.1.0",\n  "ips": [ { "address": "10.9.0.2/24" } ]\n}',
  },
  {
    name: "has keys like numbers, out of order",
    text: '{"cniVersion":"1.1.0","ips":[],"10":"ten","2":"two"}',
  },
  {
    name: "has numbers that JavaScript cannot hold",
    text: '{"cniVersion":"1.1.0","ips":[],"id":12345678901234567890,"share":1.0}',
  },
  {
    name: "has members that the spec does not know",
    text: '{"cniVersion":"1.1.0","ips":[{"address":"10.9.0.2/24","tag":null}],"vendor":{"a":[1,{}]}}',
  },
  {
    name: "has escapes",
    text: '{"cniVersion":"1.1.0","ips":[],"dns":{"search":["a\\u002fb\\/\\"}"]}}',
  },
];

test.for(named(prevResults, ({ name }) => name))(
  "ADD prints prevResult byte for byte when it %s",
  ([, { text }], { attachment }) => {
    const { call, stateDir } = attachment;
    const conf = { ...stateConf("nft", "ipv4"), sluice: { "state-dir": stateDir }, prevResult: 0 };
    const input = JSON.stringify(conf).replace('"prevResult":0', `"prevResult":${text}`);

    expect(call("ADD", input)).toMatchObject({ exitCode: 0, stdout: text });
  },
);

test("ADD fails and takes its rules out again when rules of nft's own hide the table", ({
  attachment,
}) => {
  const { netns, call } = attachment;
  const place: Place = { netns, backend: "nft", family: "ipv4" };
  loadState(place, "foreign rules only");
  netns.run("nft", ["add rule ip nat OUTPUT meta mark set 7 tcp dport 80 redirect to :99"]);
  const before = kernelState(netns);

  const answer = call("ADD", stateConf("nft", "ipv4"));

  expect(answer).toMatchObject({
    exitCode: 1,
    stdout: JSON.stringify({
      cniVersion: "1.1.0",
      code: 101,
      msg: "/usr/sbin/iptables-nft-restore (nft, ipv4, table nat) failed: Table `nat' is incompatible, use 'nft' tool.",
      details:
        "rules written by nft itself stand in the nat table, so iptables cannot show it; remove them or use another table",
    }),
  });
  expect(kernelState(netns)).toBe(before);
  expect(attachment.records()).toStrictEqual([]);
});

function told(
  { backend, family }: Place,
  done: { readonly changed: readonly Family[]; readonly execs: number },
) {
  return {
    level: "info",
    command: "ADD",
    containerId: "c1",
    ifName: "eth0",
    pod: { namespace: "", name: "" },
    families: family === "ipv6" ? ["ipv4", "ipv6"] : ["ipv4"],
    backend,
    ...done,
    msg: "done",
  };
}

// Nobody listens; the first packet is all that the counters need.
function connect(netns: LabNetns, family: Family): void {
  const address = family === "ipv4" ? "127.0.0.1" : "::1";
  netns.run("bash", ["-c", `{ : > /dev/tcp/${address}/1; } 2>&1 || true`]);
}
