// A rule's text, read.
import { expect, test } from "vitest";
import { chainOf, content, targetOf, words } from "../../src/netfilter/rule.ts";

const lines: [when: string, line: string, found: string[]][] = [
  ["there are none", "", []],
  ["blanks are between them", "-A  OUTPUT\t-j A ", ["-A", "OUTPUT", "-j", "A"]],
  ["one is quoted", '--comment "a b" -j A', ["--comment", "a b", "-j", "A"]],
  ["one is quoted and empty", '--comment "" -j A', ["--comment", "", "-j", "A"]],
  ["quotes are escaped", '--comment "a \\"b\\" c" -j A', ["--comment", 'a "b" c', "-j", "A"]],
  ["backslashes are escaped", '--comment "a\\\\" -j A', ["--comment", "a\\", "-j", "A"]],
  ["an apostrophe is escaped", `--comment "it\\'s" -j A`, ["--comment", "it's", "-j", "A"]],
];

test.each(lines)("words() splits a line when %s", (_, line, found) => {
  expect(words(line)).toEqual(found);
});

const chains: [rule: string, chain: string][] = [
  ["-A OUTPUT -j A", "OUTPUT"],
  ["-A A_b-1 -p tcp", "A_b-1"],
  [":OUTPUT ACCEPT [0:0]", ""],
  ["-I OUTPUT -j A", ""],
  ["", ""],
];

test.each(chains)("chainOf() %j is %j", (rule, chain) => {
  expect(chainOf(rule)).toBe(chain);
});

const targets: [rule: string, target: string][] = [
  ["-A OUTPUT -j A", "A"],
  ["-A OUTPUT -p tcp -g A", "A"],
  ["-A OUTPUT -p tcp -j REDIRECT --to-ports 4140", "REDIRECT"],
  ["-A OUTPUT -p tcp", ""],
  ['-A OUTPUT -m comment --comment "x -j B" -j A', "A"],
  ['-A OUTPUT -m comment --comment "x \\" -j B" -j A', "A"],
  ["-A OUTPUT -m comment --comment -j -j A", "A"],
  ['-A OUTPUT -m comment --comment "-j" -j A', "A"],
];

test.each(targets)("targetOf() %j is %j", (rule, target) => {
  expect(targetOf(rule)).toBe(target);
});

const contents: [rule: string, rest: string][] = [
  ["-A OUTPUT -j A", "-A OUTPUT -j A"],
  ['-A OUTPUT -m comment --comment "a b" -j A', "-A OUTPUT -j A"],
  ["-A OUTPUT -m comment --comment ab -j A", "-A OUTPUT -j A"],
  ['-A OUTPUT -m comment --comment "a\\"b c" -j A', "-A OUTPUT -j A"],
  ['-A OUTPUT -m comment --comment "a" -m comment --comment "b" -j A', "-A OUTPUT -j A"],
  ['-A O -p tcp -m comment --comment "" -m tcp --dport 1', "-A O -p tcp -m tcp --dport 1"],
];

test.each(contents)("content() %j is %j", (rule, rest) => {
  expect(content(rule)).toBe(rest);
});
