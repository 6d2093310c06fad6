// Made-up rulesets of several tables, in the words of a mesh that captures with TPROXY in mangle, or with REDIRECT in nat. Each
// has what Linkerd's has not: chains without a jump, rules that stand directly in builtin chains, UDP, three tables.
import type {
  Family,
  OwnTable,
  Ruleset,
  Table,
  TableName,
  Traffic,
} from "../../src/netfilter/table.ts";

const traffic: Traffic = { protocols: ["tcp", "udp"], loopback: false };

/** Captures in mangle what comes in: a jump, a rule that acts by itself behind it, and a chain that nothing leads into. */
export function mangleCapture(family: Family): Ruleset {
  const any = family === "ipv4" ? "0.0.0.0" : "::";
  return {
    family,
    traffic,
    tables: [
      {
        name: "mangle",
        chains: [
          {
            name: "MADE_IN",
            rules: [
              "-A MADE_IN -p tcp -m socket -j MARK --set-xmark 0x539/0xffffffff",
              `-A MADE_IN -p tcp -j TPROXY --on-port 15006 --on-ip ${any} --tproxy-mark 0x539/0xffffffff`,
            ],
          },
          { name: "MADE_IDLE", rules: ["-A MADE_IDLE -p tcp -j MARK --set-xmark 0x5/0xffffffff"] },
        ],
        placed: [
          { hook: "PREROUTING", rule: "-A PREROUTING -p tcp -j MADE_IN" },
          {
            hook: "PREROUTING",
            rule: "-A PREROUTING -p tcp -m mark --mark 0x539 -j CONNMARK --save-mark --nfmask 0xffffffff --ctmask 0xffffffff",
          },
          {
            hook: "OUTPUT",
            rule: "-A OUTPUT -p tcp -m connmark --mark 0x539 -j CONNMARK --restore-mark --nfmask 0xffffffff --ctmask 0xffffffff",
          },
        ],
      },
    ],
  };
}

/** Captures in nat what comes in and goes out, DNS too, whose answers have a conntrack zone of their own from raw on. */
export function natCapture(family: Family): Ruleset {
  return {
    family,
    traffic,
    tables: [
      {
        name: "raw",
        chains: [
          { name: "MADE_ZONE", rules: ["-A MADE_ZONE -p udp -m udp --dport 53 -j CT --zone 1"] },
        ],
        placed: [
          { hook: "OUTPUT", rule: "-A OUTPUT -p udp -j MADE_ZONE" },
          {
            hook: "OUTPUT",
            rule: "-A OUTPUT -p udp -m udp --dport 54 -m owner --uid-owner 1337 -j CT --zone 2",
          },
          { hook: "PREROUTING", rule: "-A PREROUTING -p udp -m udp --sport 53 -j CT --zone 1" },
        ],
      },
      {
        name: "nat",
        chains: [
          {
            name: "MADE_OUT",
            rules: [
              "-A MADE_OUT -p udp -m udp --dport 53 -j REDIRECT --to-ports 15053",
              "-A MADE_OUT -p tcp -j REDIRECT --to-ports 15001",
            ],
          },
          { name: "MADE_IN", rules: ["-A MADE_IN -p tcp -j REDIRECT --to-ports 15006"] },
        ],
        placed: [
          { hook: "OUTPUT", rule: "-A OUTPUT -j MADE_OUT" },
          { hook: "PREROUTING", rule: "-A PREROUTING -p tcp -j MADE_IN" },
        ],
      },
    ],
  };
}

/** Captures in nat, and has a chain in mangle that only marks: it shares mangle with what captures there. */
export function markingCapture(family: Family): Ruleset {
  const { tables } = natCapture(family);
  const marking: OwnTable = {
    name: "mangle",
    chains: [
      { name: "MADE_MARK", rules: ["-A MADE_MARK -p tcp -j MARK --set-xmark 0x9/0xffffffff"] },
    ],
    placed: [{ hook: "PREROUTING", rule: "-A PREROUTING -p tcp -j MADE_MARK" }],
  };
  return { family, traffic, tables: [...tables, marking] };
}

/** One chain of mangle that jumps from two builtin chains lead into, one of them in words that only ours may have. */
export function sharedChain(family: Family): Ruleset {
  return {
    family,
    traffic,
    tables: [
      {
        name: "mangle",
        chains: [
          { name: "MADE_BOTH", rules: ["-A MADE_BOTH -p udp -j MARK --set-xmark 0x7/0xffffffff"] },
        ],
        placed: [
          {
            hook: "PREROUTING",
            rule: "-A PREROUTING -p tcp -m socket --transparent -j MADE_BOTH",
          },
          { hook: "OUTPUT", rule: "-A OUTPUT -p tcp -j MADE_BOTH" },
          { hook: "OUTPUT", rule: "-A OUTPUT -p udp -j MADE_BOTH" },
        ],
      },
    ],
  };
}

/** Rules directly in builtin chains of raw, and no chain of ours beside them: nothing there refuses to be written twice. */
export function bareZones(family: Family): Ruleset {
  const { tables } = natCapture(family);
  const bare = tables.flatMap((table) =>
    table.name === "raw" ? [{ ...table, chains: [], placed: table.placed.slice(1) }] : [],
  );
  return { family, traffic, tables: bare };
}

/** The tables that hold these rulesets and nothing else; no two of them share a table. */
export function tablesOf(rulesets: readonly Ruleset[]): Partial<Record<TableName, Table>> {
  const all = rulesets.flatMap(({ tables }) => tables);
  return Object.fromEntries(
    all.map(({ name, chains, placed }) => {
      const own = chains.map((chain) => [chain.name, chain.rules] as const);
      const hooks = [...new Set(placed.map(({ hook }) => hook))].map((hook) => {
        return [hook, placed.filter((one) => one.hook === hook).map(({ rule }) => rule)] as const;
      });
      return [name, { chains: new Map([...own, ...hooks]) }];
    }),
  );
}
