// Finds the foreign rule that takes a pod's traffic before our jump sees it (istio PR#55425, "Limitations"): with such
// a rule in front, every rule of ours is in place and nothing is redirected. What cannot be proven to let all of it pass
// is held to take it: better a question too many than a silent bypass.
import { type Condition, type Rule, readRule } from "./rule.ts";
import { protocolOf, type RuleText, rulesOf, type Table, type Traffic } from "./table.ts";

/** Targets after which the packet goes on to the next rule. Not TRACE: so nft's own verdict maps may be printed. */
const passing = new Set([
  "LOG",
  "NFLOG",
  "ULOG",
  "MARK",
  "CONNMARK",
  "CONNSECMARK",
  "SECMARK",
  "AUDIT",
  "SET",
  "LED",
]);

/** The first of these rules, all ahead of one of ours in the same builtin chain, that takes traffic meant for it. */
export function shadowing(
  table: Table,
  ahead: readonly RuleText[],
  traffic: Traffic,
): RuleText | undefined {
  // A chain that was walked and is in here lets all pass: each is walked once.
  const walk: Walk = { table, traffic, walked: new Set() };
  return ahead.find((rule) => {
    const end = fateOf(walk, rule, "builtin");
    return end === "taken" || (end !== "passed" && takes(walk, end.into));
  });
}

/** Foreign rules that redirect elsewhere: in another backend, either these or ours take a packet. */
export function foreignRedirects(
  table: Table,
  own: readonly string[],
  traffic: Traffic,
): RuleText[] {
  const ours = new Set(own);
  const foreign = [...table.chains]
    .filter(([chain]) => !ours.has(chain))
    .flatMap(([, rules]) => rules);
  return foreign.filter((line) => {
    const rule = readRule(line);
    if (rule === undefined) return true;
    return ["REDIRECT", "DNAT"].includes(rule.target) && couldMatch(rule, traffic);
  });
}

/**
 * True when a rule can match some of the traffic. Those that only match what ours let pass anyway cannot: other protocols, or
 * loopback. A packet from the pod to 127.0.0.0/8 or ::1 always leaves by lo; Docker's DNS rules (-d 127.0.0.11/32) are of
 * this kind.
 */
export function matchesTraffic(line: RuleText, traffic: Traffic): boolean {
  const rule = readRule(line);
  return rule === undefined || couldMatch(rule, traffic);
}

function couldMatch(rule: Rule, traffic: Traffic): boolean {
  return isInterfaceInverted(rule) || !rule.conditions.some((one) => excludes(one, traffic));
}

function excludes({ option, value, inverted }: Condition, traffic: Traffic): boolean {
  switch (option) {
    case "-p":
      return excludesProtocols(value, inverted, traffic);
    case "-o":
    case "-i":
      return value === "lo" && !inverted && !traffic.loopback;
    case "-d":
      return isLoopback(value) && !inverted && !traffic.loopback;
    default:
      return false;
  }
}

// `! -p tcp` leaves nothing of traffic that is TCP alone.
function excludesProtocols(value: string, inverted: boolean, traffic: Traffic): boolean {
  if (value === "all" || value === "0") return false;
  const named = protocolOf(value);
  return inverted
    ? traffic.protocols.every((name) => name === named)
    : !traffic.protocols.some((name) => name === named);
}

function isLoopback(subnet: string): boolean {
  const prefix = /^127\.[0-9]+\.[0-9]+\.[0-9]+\/([0-9]+)$/.exec(subnet)?.[1];
  return subnet === "::1/128" || Number(prefix ?? 0) >= 8;
}

// The tools take any text for an interface, and print it as it is: `! -o "a -p udp"`, which all packets match, reads like
// a rule for UDP alone. Nothing that stands behind such a name is believed. Without the `!`, no packet matches.
function isInterfaceInverted({ conditions }: Rule): boolean {
  return conditions.some(({ option, inverted }) => inverted && ["-i", "-o"].includes(option));
}

/** The chains of a table that were gone through, and whose traffic is followed. */
type Walk = { readonly table: Table; readonly traffic: Traffic; readonly walked: Set<string> };

type Fate = "taken" | "passed" | { readonly into: string };

// Where a rule leaves the packets that are meant for us. A chain of somebody's own comes before a target of the same name.
// RETURN, and the end of a chain that was gone to (-g), hand the packet to the policy in a builtin chain, which takes it;
// in somebody's own it only goes back to where we look on. A rule without target may be a verdict map of nft's own.
function fateOf({ table, traffic }: Walk, line: RuleText, within: "builtin" | "own"): Fate {
  const rule = readRule(line);
  if (rule === undefined || isInterfaceInverted(rule)) return "taken";
  if (!couldMatch(rule, traffic)) return "passed";
  const { target, verdict } = rule;
  const isFinal = within === "builtin";
  if (table.chains.has(target)) return isFinal && verdict === "-g" ? "taken" : { into: target };
  if (target === "RETURN") return isFinal ? "taken" : "passed";
  return passing.has(target) ? "passed" : "taken";
}

// In a row and not by recursion: chains may be thousands deep.
function takes(walk: Walk, chain: string): boolean {
  const { table, walked } = walk;
  const open = [chain];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (walked.has(next)) continue;
    walked.add(next);
    for (const line of rulesOf(table, next)) {
      const fate = fateOf(walk, line, "own");
      if (fate === "taken") return true;
      if (fate !== "passed") open.push(fate.into);
    }
  }
  return false;
}
