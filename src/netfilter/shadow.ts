// Finds the foreign rule that takes a pod's traffic before our jump sees it (istio PR#55425, "Limitations"): with such
// a rule in front, every rule of ours is in place and nothing is redirected. What cannot be proven to let all of it pass
// is held to take it: better a question too many than a silent bypass.
import { ownChains } from "../mesh/linkerd/names.ts";
import { type Condition, type Rule, readRule } from "./rule.ts";
import { type RuleText, rulesOf, type Table } from "./table.ts";

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

/** The first of these rules, all ahead of a jump in the same builtin chain, that takes traffic meant for it. */
export function shadowing(table: Table, ahead: readonly RuleText[]): RuleText | undefined {
  // A chain that was walked and is in here lets all pass: each is walked once.
  const walked = new Set<string>();
  return ahead.find((rule) => {
    const end = fateOf(table, rule, "builtin");
    return end === "taken" || (end !== "passed" && takes(table, end.into, walked));
  });
}

/** Foreign rules that redirect elsewhere: in the other backend, either these or ours take a packet. */
export function foreignRedirects(table: Table): RuleText[] {
  const own = new Set<string>(ownChains);
  const foreign = [...table.chains]
    .filter(([chain]) => !own.has(chain))
    .flatMap(([, rules]) => rules);
  return foreign.filter((line) => {
    const rule = readRule(line);
    if (rule === undefined) return true;
    return ["REDIRECT", "DNAT"].includes(rule.target) && couldMatch(rule);
  });
}

/**
 * True when a rule can match what our chains redirect. Those that only match what ours let pass anyway cannot: other
 * protocols, or loopback. A packet from the pod to 127.0.0.0/8 or ::1 always leaves by lo; Docker's DNS rules
 * (-d 127.0.0.11/32) are of this kind.
 */
export function matchesRedirected(line: RuleText): boolean {
  const rule = readRule(line);
  return rule === undefined || couldMatch(rule);
}

function couldMatch(rule: Rule): boolean {
  return isInterfaceInverted(rule) || !rule.conditions.some(excludesRedirected);
}

function excludesRedirected({ option, value, inverted }: Condition): boolean {
  switch (option) {
    case "-p":
      return inverted
        ? value === "tcp" || value === "6"
        : !["tcp", "6", "all", "0"].includes(value);
    case "-o":
    case "-i":
      return value === "lo" && !inverted;
    case "-d":
      return isLoopback(value) && !inverted;
    default:
      return false;
  }
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

type Fate = "taken" | "passed" | { readonly into: string };

// Where a rule leaves the packets that are meant for us. A chain of somebody's own comes before a target of the same name.
// RETURN, and the end of a chain that was gone to (-g), hand the packet to the policy in a builtin chain, which takes it;
// in somebody's own it only goes back to where we look on. A rule without target may be a verdict map of nft's own.
function fateOf(table: Table, line: RuleText, within: "builtin" | "own"): Fate {
  const rule = readRule(line);
  if (rule === undefined || isInterfaceInverted(rule)) return "taken";
  if (!couldMatch(rule)) return "passed";
  const { target, verdict } = rule;
  const isFinal = within === "builtin";
  if (table.chains.has(target)) return isFinal && verdict === "-g" ? "taken" : { into: target };
  if (target === "RETURN") return isFinal ? "taken" : "passed";
  return passing.has(target) ? "passed" : "taken";
}

// In a row and not by recursion: chains may be thousands deep.
function takes(table: Table, chain: string, walked: Set<string>): boolean {
  const open = [chain];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (walked.has(next)) continue;
    walked.add(next);
    for (const line of rulesOf(table, next)) {
      const fate = fateOf(table, line, "own");
      if (fate === "taken") return true;
      if (fate !== "passed") open.push(fate.into);
    }
  }
  return false;
}
