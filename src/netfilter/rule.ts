// Reads a rule's text: words, chain, target. The spelling is iptables-save's (xtables_save_string quotes and escapes).
import type { RuleText } from "./table.ts";

/** Splits a line into words; quotes group, a backslash takes the next character as it is. */
export function words(line: string): string[] {
  const found = line.matchAll(/(?:"(?:[^"\\]|\\.)*"|[^\s"])+/g);
  return [...found].map(([word]) =>
    word.replaceAll(/"((?:[^"\\]|\\.)*)"/g, (_, quoted: string) =>
      quoted.replaceAll(/\\(.)/g, "$1"),
    ),
  );
}

/** The chain that a rule stands in; "" for what is no rule. */
export function chainOf(rule: RuleText): string {
  return /^-A (\S+)/.exec(rule)?.[1] ?? "";
}

/** Where a rule sends a packet that it matches: the word after -j or -g; "" for a rule that only counts. */
export function targetOf(rule: RuleText): string {
  const parts = words(content(rule));
  const at = parts.findIndex((word) => word === "-j" || word === "-g");
  return at === -1 ? "" : (parts[at + 1] ?? "");
}

const comment = / -m comment --comment (?:"(?:[^"\\]|\\.)*"|\S+)/g;

/**
 * A rule without its comments: what it does. Comments are for people; linkerd-init stamped the time into its own,
 * and its rules are as good as ours (linkerd2-proxy-init#4).
 */
export function content(rule: RuleText): RuleText {
  return rule.replaceAll(comment, "");
}
