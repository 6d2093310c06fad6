// A nat table that iptables does not show whole, for something of nft's own stands in it: CHECK says so, ADD refuses, and DEL
// takes out what is ours all the same, or keeps the record for a later one.
import { describe, expect } from "vitest";
import { families } from "../../../src/netfilter/table.ts";
import type { LabNetns } from "../../lab/netns.ts";
import { named, stateConf, test } from "./level.ts";

const incompatible = "Table `nat' is incompatible, use 'nft' tool.";
const tainted = "Table `nat' contains incompatible base-chains, use 'nft' tool to list them.";
const undecodable = "Parsing nftables rule failed.";

/** What stands in the tables of both families (NAT stands for `ip nat` and `ip6 nat`). */
type Row = {
  readonly what: string;
  readonly write: string;
  /** iptables' own words for it. */
  readonly said: string;
  /** What CHECK tells of it besides, once nft is asked. */
  readonly holds?: string;
  /** Of our chains, those that no DEL can take out. */
  readonly left?: readonly string[];
};

const rows: readonly Row[] = [
  {
    what: "a base chain",
    write: "add chain NAT other { type nat hook output priority -110; }",
    said: tainted,
    holds: "nft's chain other in table NAT (nat, output, priority -110)",
  },
  {
    what: "a base chain of another hook",
    write: "add chain NAT other { type nat hook postrouting priority 90; }",
    said: tainted,
    holds: "nft's chain other in table NAT (nat, postrouting, priority 90)",
  },
  {
    what: "a rule behind our jump",
    write: "add rule NAT OUTPUT udp dport 80 redirect to :99",
    said: incompatible,
  },
  {
    what: "a rule ahead of our jump",
    write: "insert rule NAT OUTPUT udp dport 80 redirect to :99",
    said: incompatible,
  },
  {
    what: "a rule in our chain",
    write: "add rule NAT PROXY_INIT_OUTPUT tcp dport 80 redirect to :99",
    said: incompatible,
    holds: "rules of nft's own in chain PROXY_INIT_OUTPUT",
  },
  {
    what: "a rule in our chain that ends iptables-save",
    write: "insert rule NAT PROXY_INIT_OUTPUT meta skuid 5 accept",
    said: undecodable,
    holds: "rules of nft's own in chain PROXY_INIT_OUTPUT",
  },
  {
    what: "a rule ahead of our jump that ends iptables-save",
    write: "insert rule NAT OUTPUT meta skuid 5 accept",
    said: undecodable,
    left: ["PROXY_INIT_OUTPUT"],
  },
  {
    what: "a jump to our chain",
    write: "add chain NAT other; add rule NAT other ct state new jump PROXY_INIT_OUTPUT",
    said: incompatible,
    holds: "rules of nft's own in chain other",
    left: ["PROXY_INIT_OUTPUT"],
  },
];

const conf = stateConf("nft", ...families);

describe("another table that iptables cannot show, or whose text cannot be trusted", () => {
  const recent = (name: string) => [
    ...["-A", "OUTPUT", "-p", "udp", "-m", "recent", "--set", "--name", name, "-j", "RETURN"],
  ];

  test("is no drift where the nat table by itself is in order", ({ attachment }) => {
    const { netns, call } = attachment;
    call("ADD", conf);
    netns.run("iptables-nft", ["-t", "filter", ...recent("a")]);
    netns.run("iptables-nft", ["-t", "mangle", ...recent("b\nc")]);
    expect(call("CHECK", conf)).toMatchObject({ exitCode: 0, stdout: "" });

    netns.run("nft", ["add rule ip filter OUTPUT meta skuid 5 accept"]);
    expect(call("CHECK", conf)).toMatchObject({ exitCode: 0, stdout: "" });
  });

  test("does not pass for a nat table that is gone", ({ attachment }) => {
    const { netns, call } = attachment;
    call("ADD", conf);
    const saved = netns.run("iptables-nft-save", ["-t", "nat"]);
    const lines = saved
      .replaceAll(/ -m comment --comment "[^"]*"/g, "")
      .split("\n")
      .filter((line) => !line.startsWith("#") && line !== "COMMIT");
    netns.run("nft", ["delete table ip nat"]);
    // Within the 200 characters that such a name takes, its end left to the tool.
    const pieces = lines.map((line, i) => (i === 0 ? `x\nCOMMIT\n${line}` : line));
    for (const piece of pieces) {
      netns.run("iptables-nft", [
        "-t",
        "filter",
        ...recent(`${piece}\n-A OUTPUT -m recent --name z`),
      ]);
    }

    expect(JSON.parse(call("CHECK", conf).stdout).details).toContain(
      "missing-chain (ipv4 nat PROXY_INIT_OUTPUT)",
    );
  });
});

describe("a nat table with something of nft's own in it", () => {
  test.for(named(rows, ({ what }) => what))(
    "%s: CHECK tells it, ADD refuses",
    ([, row], { attachment }) => {
      const { netns, call } = attachment;
      call("ADD", conf);
      write(netns, row);

      const { code, details } = JSON.parse(call("CHECK", conf).stdout);
      expect(code).toBe(100);
      const lines: string[] = details.split("\n");
      expect(lines.filter((line) => line.startsWith("unverifiable"))).toEqual(
        families.map((family) => {
          const holds = row.holds === undefined ? "" : ` It holds ${ofFamily(row.holds, family)}.`;
          return `unverifiable (${family} nat): found ${row.said}${holds}`;
        }),
      );
      const refused = JSON.parse(call("ADD", conf).stdout);
      expect(refused).toMatchObject({
        code: 101,
        msg: expect.stringContaining(`failed: ${row.said}`),
      });
      const bases = families.map((family) => ofFamily(row.holds ?? "", family)).join(", ");
      const isTold = row.said === tainted;
      expect(refused.details.endsWith(`; there is ${bases}`)).toBe(isTold);
    },
  );

  test.for(named(rows, ({ what }) => what))(
    "%s: DEL takes ours out, or keeps the record",
    ([, row], { attachment }) => {
      const { netns, call, records } = attachment;
      const { left = [] } = row;
      call("ADD", conf);
      write(netns, row);

      const answer = call("DEL", conf);

      expect(answer).toMatchObject({ exitCode: 0, stdout: "" });
      expect(ownChainsIn(netns)).toEqual([...left, ...left]);
      expect(records()).toEqual(left.length === 0 ? [] : ["lab,c1,eth0.json"]);
      const details = left.flatMap((chain) =>
        families.map((family) => {
          return `${chain} is left, empty, and the ${family} nat table cannot be verified: ${row.said}`;
        }),
      );
      if (left.length > 0) expect(answer.stderr).toContain(details.join("; "));

      netns.remove();
      expect(call("DEL", conf)).toMatchObject({ exitCode: 0, stdout: "" });
      expect(records()).toEqual([]);
    },
  );

  test("DEL with the foreign rule gone takes out the rest", ({ attachment }) => {
    const { netns, call, records } = attachment;
    call("ADD", conf);
    write(netns, {
      write: "add chain NAT other; add rule NAT other ct state new jump PROXY_INIT_OUTPUT",
    });
    call("DEL", conf);
    write(netns, { write: "flush chain NAT other; delete chain NAT other" });

    call("DEL", conf);
    expect(ownChainsIn(netns)).toEqual([]);
    expect(records()).toEqual([]);
  });

  test("linkerd-init's jumps in the place of ours go as well", ({ attachment }) => {
    const { netns, call, records } = attachment;
    call("ADD", conf);
    for (const program of ["iptables-nft", "ip6tables-nft"]) {
      const comment = ["-m", "comment", "--comment", "proxy-init/install-proxy-init-output"];
      netns.run(program, ["-t", "nat", "-F", "OUTPUT"]);
      netns.run(program, ["-t", "nat", "-A", "OUTPUT", ...comment, "-j", "PROXY_INIT_OUTPUT"]);
    }
    write(netns, { write: "add rule NAT OUTPUT udp dport 80 redirect to :99" });

    call("DEL", conf);
    expect(ownChainsIn(netns)).toEqual([]);
    expect(records()).toEqual([]);
  });
});

function write(netns: LabNetns, row: Pick<Row, "write">): void {
  for (const family of families) netns.run("nft", [ofFamily(row.write, family)]);
}

function ofFamily(text: string, family: (typeof families)[number]): string {
  return text.replaceAll("NAT", family === "ipv4" ? "ip nat" : "ip6 nat");
}

/** Our chains, those of IPv4 first. */
function ownChainsIn(netns: LabNetns): string[] {
  const listed = netns.run("nft", ["list ruleset"]);
  return [...listed.matchAll(/^\tchain (PROXY_INIT_\w+) /gm)].map(([, name]) => name ?? "");
}
