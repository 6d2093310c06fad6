// Finds the foreign rule that takes a pod's traffic before our jump sees it (istio PR#55425, "Limitations"): with such
// a rule in front, every rule of ours is in place and nothing is redirected.
import { ownChains } from "../mesh/linkerd.ts";
import { chainOf, content, targetOf, words } from "./rule.ts";
import { type RuleText, rulesOf, type Table } from "./table.ts";

/** Targets after which the packet goes on to the next rule. */
const passing = new Set([
  "",
  "LOG",
  "NFLOG",
  "ULOG",
  "MARK",
  "CONNMARK",
  "CONNSECMARK",
  "SECMARK",
  "TRACE",
  "AUDIT",
  "SET",
  "LED",
]);

/** The first of these rules, all ahead of a jump in the same builtin chain, that takes traffic meant for it. */
export function shadowing(table: Table, ahead: readonly RuleText[]): RuleText | undefined {
  return ahead.find((rule) => matchesRedirected(rule) && ends(table, rule, []));
}

/** Foreign rules that redirect elsewhere: in the other backend, either these or ours take a packet. */
export function foreignRedirects(table: Table): RuleText[] {
  const own = new Set<string>(ownChains);
  const foreign = [...table.chains]
    .filter(([chain]) => !own.has(chain))
    .flatMap(([, rules]) => rules);
  return foreign.filter((rule) => {
    return matchesRedirected(rule) && ["REDIRECT", "DNAT"].includes(targetOf(rule));
  });
}

/**
 * True when a rule can match what our chains redirect. Those that only match what ours let pass anyway cannot: other
 * protocols, or loopback. A packet from the pod to 127.0.0.0/8 or ::1 always leaves by lo; Docker's DNS rules
 * (-d 127.0.0.11/32) are of this kind.
 */
export function matchesRedirected(rule: RuleText): boolean {
  const parts = words(content(rule));
  return !parts.some((word, at) => {
    if (parts[at - 1] === "!") return word === "-p" && parts[at + 1] === "tcp";
    return excludesRedirected(word, parts[at + 1] ?? "");
  });
}

function excludesRedirected(option: string, value: string): boolean {
  switch (option) {
    case "-p":
      return value !== "tcp" && value !== "6" && value !== "all";
    case "-o":
    case "-i":
      return value === "lo";
    case "-d":
      return value.startsWith("127.") || value === "::1/128";
    default:
      return false;
  }
}

// RETURN in a builtin chain hands the packet to the policy: it ends there too. In a chain of someone else's it only
// goes back to where we look on. An unknown target is held to end: better a question too many than a silent bypass.
function ends(table: Table, rule: RuleText, within: readonly string[]): boolean {
  const target = targetOf(rule);
  if (passing.has(target)) return false;
  if (target === "RETURN") return within.length === 0;
  if (!table.chains.has(target)) return true;
  if (within.includes(target)) return false;
  const path = [...within, target];
  return rulesOf(table, target).some(
    (inner) => chainOf(inner) === target && matchesRedirected(inner) && ends(table, inner, path),
  );
}
