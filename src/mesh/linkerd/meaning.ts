// What an own chain does, apart from how it is spelt: other tools fill chains of the same names with rules in another order
// and packing. Pure. Knows the rules that ruleset.ts makes, and Linkerd's own tools; nothing else has a meaning here.
import { content } from "../../netfilter/rule.ts";
import type { RuleText } from "../../netfilter/table.ts";
import { mergePorts, type PortRange } from "../../redirect/port.ts";

/**
 * A text that is the same for chains that do the same: rules that end alike (all let pass, or all redirect to one port) may
 * stand in any order, and ports may be packed in any way. Undefined where a rule is of no known kind.
 */
export function meaningOf(rules: readonly RuleText[]): string | undefined {
  const parts = rules.map((rule) => partOf(content(rule)));
  const runs: { target: string; parts: Part[] }[] = [];
  for (const part of parts) {
    if (part === undefined) return undefined;
    const last = runs.at(-1);
    if (last?.target === part.target) last.parts.push(part);
    else runs.push({ target: part.target, parts: [part] });
  }
  return runs.map((run) => `${run.target}: ${matchesOf(run.parts).join("; ")}`).join("\n");
}

/** One rule: where it sends what it matches. Ports stand apart, to be merged with those of other rules. */
type Part = {
  readonly target: string;
  readonly match: string;
  readonly ports: readonly PortRange[];
};

const kinds: readonly RegExp[] = [
  /^-A \S+ (?<match>-m owner --[ug]id-owner \d+) -j (?<target>RETURN)$/,
  /^-A \S+ (?<match>-o lo) -j (?<target>RETURN)$/,
  /^-A \S+ (?:(?<match>-s [0-9a-f:.]+\/\d+) )?-j (?<target>RETURN)$/,
  /^-A \S+ -p tcp -m multiport --dports (?<ports>\d+(?::\d+)?(?:,\d+(?::\d+)?)*) -j (?<target>RETURN)$/,
  /^-A \S+ -p tcp -m tcp --dport (?<ports>\d+) -j (?<target>REDIRECT --to-ports \d+)$/,
  /^-A \S+ (?<match>-p tcp) -j (?<target>REDIRECT --to-ports \d+)$/,
];

function partOf(rule: RuleText): Part | undefined {
  for (const kind of kinds) {
    const groups = kind.exec(rule)?.groups;
    if (groups === undefined) continue;
    const { target = "", match = "all", ports } = groups;
    return ports === undefined
      ? { target, match, ports: [] }
      : { target, match: "", ports: ports.split(",").map(portsOf) };
  }
  return undefined;
}

// No packet has port 0.
function portsOf(text: string): PortRange {
  const [from = 0, to = from] = text.split(":").map(Number);
  return { from: Math.max(1, from), to };
}

function matchesOf(parts: readonly Part[]): string[] {
  const merged = mergePorts(
    parts.flatMap(({ ports }) => ports).filter(({ from, to }) => from <= to),
  );
  const ports = merged.map(({ from, to }) => `port ${from}-${to}`);
  const others = new Set(parts.filter(({ match }) => match !== "").map(({ match }) => match));
  return [...[...others].sort(), ...ports];
}
