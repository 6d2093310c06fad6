// Pods as Linkerd's own injector made them, with what the real linkerd-init wrote for each (fixture/linkerd-injected.json), and
// where ours is meant to differ: each with its reason.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSave } from "../../src/netfilter/save.ts";
import type { Family } from "../../src/netfilter/table.ts";
import { packetsAround, tracer } from "./trace.ts";

type Lines = readonly string[];

export type InjectedPod = {
  readonly name: string;
  /** What the conf has besides `clusterConf`. */
  readonly linkerd: { readonly ipv6: boolean };
  readonly annotations: Readonly<Record<string, string>>;
  readonly init: {
    readonly code: number;
    readonly rules?: { readonly v4?: Lines; readonly v6?: Lines };
  };
};

const fixture = join(import.meta.dirname, "../fixture/linkerd-injected.json");
export const injectedPods: readonly InjectedPod[] = JSON.parse(readFileSync(fixture, "utf8"));

/** The conf that says what the cluster's values were: Linkerd's defaults. */
export const clusterConf = {
  "incoming-proxy-port": 4143,
  "outgoing-proxy-port": 4140,
  "proxy-uid": 2102,
  "inbound-ports-to-ignore": ["4190", "4191", "4567", "4568"],
  "outbound-ports-to-ignore": ["4567", "4568"],
};

/** The rules of linkerd-init by family; the conf's inbound list is added to, not replaced, as linkerd-cni does. */
export function theirRules({ annotations, init }: InjectedPod): Lines[] {
  const { v4, v6 } = init.rules ?? {};
  const found = [v4, v6].filter((lines) => lines !== undefined);
  const keys = ["skip-inbound-ports", "admin-port", "control-port"];
  const isAddedTo = keys.some((key) => `config.linkerd.io/${key}` in annotations);
  return isAddedTo ? found.map(withConfsInbound) : found;
}

function withConfsInbound(lines: Lines): Lines {
  const at = lines.findIndex((line) => line.startsWith("-A PROXY_INIT_REDIRECT"));
  const ports = clusterConf["inbound-ports-to-ignore"].join();
  const rule = `-A PROXY_INIT_REDIRECT -p tcp -m multiport --dports ${ports} -j RETURN`;
  return [...lines.slice(0, at), rule, ...lines.slice(at)];
}

/** The packets that go elsewhere by the one rules than by the others. */
export function differences(ours: Lines, theirs: Lines, family: Family): object[] {
  const [goes, went] = [ours, theirs].map(tracerOf);
  return packetsAround([...ours, ...theirs], family)
    .map((packet) => ({ packet, ours: goes?.(packet), theirs: went?.(packet) }))
    .filter((verdict) => verdict.ours !== verdict.theirs);
}

function tracerOf(rules: Lines): ReturnType<typeof tracer> {
  const chains = ["PREROUTING", "OUTPUT", "PROXY_INIT_REDIRECT", "PROXY_INIT_OUTPUT"];
  const declared = chains.map((chain) => `:${chain} - [0:0]`);
  return tracer(parseSave(["*nat", ...declared, ...rules, "COMMIT", ""].join("\n")));
}

const noPort = "is not a port (1 to 65535)";
const noRange = "is not a range of ports (1-65535, lower end first)";
const noEntry = "is not a port or a range of ports";
const noId = "is not an id (1 to 4294967294)";
const noTime = "is not a duration of a second or more (like 30s or 1h)";
const noSubnet = "is not a subnet (like 10.0.0.0/8 or fd00::/8)";

/** Entries that are refused, by the problem; by their names, of key and text. */
const refusals: readonly (readonly [problem: string, key: string, texts: readonly string[]])[] = [
  [noPort, "admin-port", ["-1", "0", "70000"]],
  [noPort, "control-port", [" 5000", "-1", "0", "abc"]],
  [noPort, "inbound-port", [" 5000", "-1", "70000", "abc"]],
  [noPort, "outbound-port", ["-1", "70000", "abc"]],
  [noId, "proxy-gid", ["4294967295", "abc"]],
  [noId, "proxy-uid", ["-1", "0", "2102 ", "3e3", "4294967295", "abc"]],
  [noTime, "close-wait-timeout", ["30", "3000000h", "abc"]],
  [noPort, "skip-inbound-ports", ["+80", "0", "0x50", "65536", "8_0", "80,abc,443"]],
  [noRange, "skip-inbound-ports", ["-25", "80-", "90-80"]],
  [noEntry, "skip-inbound-ports", [",", "80,", "80,,443"]],
  [noPort, "skip-outbound-ports", ["+80", "0", "0x50", "65536", "80,abc,443", "http", "٣"]],
  [noRange, "skip-outbound-ports", ["-25", "90-80"]],
  [noEntry, "skip-outbound-ports", [","]],
  [noSubnet, "skip-subnets", [",", "010.0.0.0/8", "10.0.0.0/33", "localhost"]],
];

/** By the entry's name: the problem that is told. linkerd-init drops such entries, or fails, and then half-way. */
export const refused: ReadonlyMap<string, string> = new Map(
  refusals.flatMap(([problem, key, texts]) =>
    texts.flatMap((text) => {
      const told = `config.linkerd.io/${key}: ${quoted(key, text)} ${problem}`;
      return [`${key}='${text}'`, `${key}='${text}' dual`].map((name): [string, string] => [
        name,
        told,
      ]);
    }),
  ),
);

// The entry that is named: the first that cannot be read.
function quoted(key: string, text: string): string {
  const entries = key.startsWith("skip-") ? text.split(",") : [text];
  const isGood = (entry: string) => ["80", "443"].includes(entry);
  const bad = JSON.stringify(entries.find((entry) => !isGood(entry)));
  return bad.replace("٣", "\\u0663");
}

const sent = [
  "-A PREROUTING -j PROXY_INIT_REDIRECT",
  "-A OUTPUT -j PROXY_INIT_OUTPUT",
  "-A PROXY_INIT_OUTPUT -m owner --uid-owner 2102 -j RETURN",
  "-A PROXY_INIT_OUTPUT -o lo -j RETURN",
  "-A PROXY_INIT_OUTPUT -p tcp -m multiport --dports 4567,4568 -j RETURN",
  "-A PROXY_INIT_OUTPUT -p tcp -j REDIRECT --to-ports 4140",
  "-A PROXY_INIT_REDIRECT -p tcp -m multiport --dports 4190,4191,4567,4568 -j RETURN",
];
const rulesFor = (...from: readonly string[]): Lines => [
  ...sent,
  ...from.map((subnet) => `-A PROXY_INIT_REDIRECT -s ${subnet} -j RETURN`),
  "-A PROXY_INIT_REDIRECT -p tcp -j REDIRECT --to-ports 4143",
];
const changed = (change: readonly [string, string]) => [
  rulesFor().map((rule) => rule.replace(...change)),
];

/** By the entry's name: what is wrong with what linkerd-init did, and our rules. */
export const better: ReadonlyMap<string, readonly [reason: string, rules: readonly Lines[]]> =
  new Map([
    [
      "proxy-uid='4294967294'",
      ["fails: its flag holds no such number", changed(["2102", "4294967294"])],
    ],
    [
      "skip-outbound-ports=' 80'",
      [
        "fails half-way, for a blank",
        changed([
          "OUTPUT -p tcp -m multiport --dports 4567,4568",
          "OUTPUT -p tcp -m multiport --dports 80",
        ]),
      ],
    ],
    [
      "skip-subnets='10.0.0.0/8,fd00::/8'",
      ["fails half-way, at the other family's subnet", [rulesFor("10.0.0.0/8")]],
    ],
    [
      "skip-subnets='10.0.0.0/8,fd00::/8' dual",
      [
        "fails half-way, at the other family's subnet",
        [rulesFor("10.0.0.0/8"), rulesFor("fd00::/8")],
      ],
    ],
    [
      "skip-subnets='fd00::/8' dual",
      ["fails half-way, at the other family's subnet", [rulesFor(), rulesFor("fd00::/8")]],
    ],
    [
      "skip-subnets='10.0.0.1' dual",
      [
        "fails; an address alone can only be meant as a subnet of one",
        [rulesFor("10.0.0.1/32"), rulesFor()],
      ],
    ],
    ["skip-subnets='::/0'", ["excludes all of IPv4, which nobody named", [rulesFor()]]],
    [
      "skip-subnets='::/0' dual",
      ["excludes all of IPv4, which nobody named", [rulesFor(), rulesFor("::/0")]],
    ],
  ]);

/** Where single entries are dropped: what is wrong with what linkerd-init did, and our rules. */
export const betterDropping: typeof better = new Map([
  ["proxy-uid='-1'", ["exempts nobody: the proxy would redirect itself", [rulesFor()]]],
  ["proxy-uid='0'", ["exempts nobody: the proxy would redirect itself", [rulesFor()]]],
]);
