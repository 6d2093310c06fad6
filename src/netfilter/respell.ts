// Spells a jump that was read in a pod's netns anew, so that it can be taken out: from values that were checked one by one.
// What is read there is never written back as it is: its author would choose the words of our own iptables-restore,
// options that load code (--modprobe) among them.
import { type Condition, commentOf, type Match, readRule } from "./rule.ts";
import type { RuleText } from "./table.ts";

const address = /^[0-9a-f:.]{2,45}\/[0-9a-f:.]{1,45}$/;
const device = /^[A-Za-z0-9][A-Za-z0-9_.]{0,13}[A-Za-z0-9_.+]?$/;
const ports = /^[0-9]{1,5}(?::[0-9]{1,5})?$/;
const portList = /^[0-9]{1,5}(?:[,:][0-9]{1,5}){0,14}$/;
const ids = /^[0-9]{1,10}(?:-[0-9]{1,10})?$/;
const mark = /^0x[0-9a-f]{1,8}(?:\/0x[0-9a-f]{1,8})?$/;
const names = /^[A-Z]{3,20}(?:,[A-Z]{3,20}){0,9}$/;

/** What a condition's value may be. */
const conditions: ReadonlyMap<string, RegExp> = new Map([
  ["-s", address],
  ["-d", address],
  ["-i", device],
  ["-o", device],
  ["-p", /^[a-z0-9][a-z0-9-]{0,15}$/],
]);

/** The options that are known of each match, all with one value. */
const options: ReadonlyMap<string, ReadonlyMap<string, RegExp>> = new Map([
  ["tcp", byOption(["--sport", "--dport"], ports)],
  ["udp", byOption(["--sport", "--dport"], ports)],
  ["multiport", byOption(["--sports", "--dports", "--ports"], portList)],
  ["owner", byOption(["--uid-owner", "--gid-owner"], ids)],
  ["mark", byOption(["--mark"], mark)],
  ["addrtype", byOption(["--src-type", "--dst-type"], names)],
  ["conntrack", byOption(["--ctstate"], names)],
  ["state", byOption(["--state"], names)],
]);

function byOption(known: readonly string[], value: RegExp): ReadonlyMap<string, RegExp> {
  return new Map(known.map((option) => [option, value]));
}

/** Comments of no other letters are repeated; linkerd-init's and our own are of these. */
const plainComment = /^(?:[A-Za-z0-9][A-Za-z0-9_/:. ()+,=-]{0,254})?$/;

/**
 * A rule that sends packets to `chain`, in our own spelling; undefined where it has words that we do not know.
 * `chain` is the name of a chain of ours, and the rule's own chain a builtin one.
 */
export function respell(rule: RuleText, chain: string): RuleText | undefined {
  const read = readRule(rule);
  if (read === undefined || read.target !== chain || read.targetOptions.length > 0)
    return undefined;
  const parts = [
    ...read.conditions.map(spellCondition),
    ...read.matches.map((match) => spellComment(match) ?? spellMatch(match)),
  ];
  if (!/^[A-Z]{5,11}$/.test(read.chain) || parts.includes(undefined)) return undefined;
  return ["-A", read.chain, ...parts, read.verdict, chain].join(" ");
}

function spellCondition({ option, value, inverted }: Condition): string | undefined {
  if (conditions.get(option)?.test(value) !== true) return undefined;
  return `${inverted ? "! " : ""}${option} ${value}`;
}

// As iptables-save does: without quotes where none are needed.
function spellComment(match: Match): string | undefined {
  const text = commentOf(match);
  if (text === undefined || !plainComment.test(text)) return undefined;
  return `-m comment --comment ${/^[A-Za-z0-9_-]+$/.test(text) ? text : `"${text}"`}`;
}

function spellMatch({ name, options: found }: Match): string | undefined {
  const known = options.get(name);
  if (known === undefined) return undefined;
  return inverting(found).reduce<string | undefined>((spelt, [option, value, sign]) => {
    if (spelt === undefined || known.get(option)?.test(value) !== true) return undefined;
    return `${spelt} ${sign}${option} ${value}`;
  }, `-m ${name}`);
}

// Options in pairs with their values, and the `!` ahead of them; an option without value has "", which none may be.
function inverting(found: readonly string[]): [option: string, value: string, sign: string][] {
  const pairs: [string, string, string][] = [];
  for (let at = 0; at < found.length; at += 2) {
    const sign = found[at] === "!" ? "! " : "";
    if (sign !== "") at += 1;
    pairs.push([found[at] ?? "", found[at + 1] ?? "", sign]);
  }
  return pairs;
}
