// A rule's text, read.
import { expect, test } from "vitest";
import { chainOf, content, readRule, targetOf, unquoted, words } from "../../src/netfilter/rule.ts";

const lines: [when: string, line: string, found: string[] | undefined][] = [
  ["there are none", "", []],
  ["blanks are between them", "-A  OUTPUT -j A ", ["-A", "OUTPUT", "-j", "A"]],
  ["one is quoted", '--comment "a b" -j A', ["--comment", "a b", "-j", "A"]],
  ["one is quoted and empty", '--comment "" -j A', ["--comment", "", "-j", "A"]],
  ["quotes are escaped", '--comment "a \\"b\\" c" -j A', ["--comment", 'a "b" c', "-j", "A"]],
  ["backslashes are escaped", '--comment "a\\\\" -j A', ["--comment", "a\\", "-j", "A"]],
  ["an apostrophe is escaped", `--comment "it\\'s" -j A`, ["--comment", "it's", "-j", "A"]],
  ["a quoted one has odd characters", '"\u00a0\t\u202e"', ["\u00a0\t\u202e"]],
  ["a quote is left open", '--comment "a b', undefined],
  ["an escaped quote does not close it", '--comment "a\\"', undefined],
  ["a quote opens within a word", 'a"b c"', undefined],
  ["something follows a quote", '"a"b', undefined],
  ["an apostrophe stands alone", "it's", undefined],
  ["a backslash stands alone", "a\\b", undefined],
  ["a tab is between them", "-A\tOUTPUT", undefined],
  ["a blank is of another kind", "-A\u00a0OUTPUT", undefined],
  ["a control character is in one", "-A \u0001", undefined],
];

test.each(lines)("words() splits a line when %s", (_, line, found) => {
  expect(words(line)?.map(unquoted)).toEqual(found);
});

test("words() leaves the quotes of what was quoted", () => {
  expect(words('-m "-p" "a \\"b"')).toEqual(["-m", '"-p"', '"a \\"b"']);
});

test("readRule() reads a rule part by part", () => {
  const line =
    '-A OUTPUT ! -s 10.0.0.0/8 -o eth0 -p tcp -m string ! --string "-j" --algo bm -m mark --mark 0x1 -g F --x y';
  expect(readRule(line)).toEqual({
    chain: "OUTPUT",
    conditions: [
      { option: "-s", value: "10.0.0.0/8", inverted: true },
      { option: "-o", value: "eth0", inverted: false },
      { option: "-p", value: "tcp", inverted: false },
    ],
    matches: [
      { name: "string", options: ["!", "--string", '"-j"', "--algo", "bm"], at: 9 },
      { name: "mark", options: ["--mark", "0x1"], at: 16 },
    ],
    verdict: "-g",
    target: "F",
    targetOptions: ["--x", "y"],
  });
});

const unread: string[] = [
  "",
  "-A",
  ":OUTPUT ACCEPT [0:0]",
  "-D OUTPUT -j A",
  '-A "OUTPUT" -j A',
  "-A OUTPUT -j",
  "-A OUTPUT -j -V",
  "-A OUTPUT -j A -j B",
  "-A OUTPUT -j A -m mark --mark 1",
  "-A OUTPUT -m",
  "-A OUTPUT -m -V -j A",
  "-A OUTPUT --modprobe=/x -V -j A",
  "-A OUTPUT -m mark --mark 1 -p udp -j A",
  "-A OUTPUT -p udp -p tcp",
  "-A OUTPUT -p",
  '-A OUTPUT -p "udp"',
  "-A OUTPUT ! -j A",
  "-A OUTPUT stray -j A",
  "-A OUTPUT -m comment --comment",
];

test.each(unread)("readRule() does not read %j", (line) => {
  expect(readRule(line)).toBe(undefined);
  expect(content(line)).toBe(line);
});

test("readRule() is linear in the line", { timeout: 60_000 }, () => {
  const long = `-A OUTPUT -m comment --comment "${'\\"'.repeat(1_000_000)}" -j A`;
  expect(readRule(long)?.target).toBe("A");
  expect(readRule(`-A OUTPUT ${"! ".repeat(500_000)}-j A`)).toBe(undefined);
  expect(readRule(`-A OUTPUT ${"-m x ".repeat(200_000)}-j A`)?.matches).toHaveLength(200_000);
  expect(readRule(`-A OUTPUT ${'"'.repeat(1_000_001)}`)).toBe(undefined);
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
  ["-A O -m comment --comment -j -j A", "-A O -j A"],
  [
    '-A O -m string --string " -m comment --comment x" -j A',
    '-A O -m string --string " -m comment --comment x" -j A',
  ],
];

test.each(contents)("content() %j is %j", (rule, rest) => {
  expect(content(rule)).toBe(rest);
});
