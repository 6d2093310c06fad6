// A pod that may write rules in its own netns, and means harm: rules ahead of our jump that do not look like what they are,
// and rules whose names or comments hold lines which look like ours. Written by the real tools, told by the real kernel. What
// CHECK cannot prove to be as meant, it names; what ADD cannot make so, it refuses; and DEL leaves nothing of ours that acts.
import { describe, expect } from "vitest";
import type { CniAnswer } from "../../lab/plugin.ts";
import { outboundJump, save } from "../../lab/states.ts";
import { named, places, stateConf, test } from "./level.ts";

/** What is written, each line an argument vector of iptables' after `-t nat`; what CHECK says of it. */
type Trick = {
  readonly what: string;
  readonly write: readonly (readonly string[])[];
  readonly kind: "shadowed-jump" | "unverifiable";
  readonly found: string;
  /** It leads into our chain, and has words that nobody of ours writes: the record stays, and the chain is empty. */
  readonly holds?: true;
};

const shadows = (what: string, found: string, ...write: readonly (readonly string[])[]): Trick => {
  return { what, write, kind: "shadowed-jump", found };
};
const hides = (what: string, found: string, ...write: readonly (readonly string[])[]): Trick => {
  return { what, write, kind: "unverifiable", found };
};

const accepting = (chain: string) => [
  ["-N", chain],
  ["-A", chain, "-j", "ACCEPT"],
];
const comment = (text: string) => ["-m", "comment", "--comment", text];
const insert = (...rule: readonly string[]) => ["-I", "OUTPUT", ...rule];
/** An own jump that is none: everything of ours is there, but nothing leads to it. */
const noJump = [
  "-D",
  ...outboundJump
    .split(" ")
    .slice(1)
    .map((word) => word.replaceAll('"', "")),
];

const openQuote = "a rule with odd words, or a quote that is left open: -A OUTPUT";
const tricks: readonly Trick[] = [
  shadows("goes to an empty chain", "-A OUTPUT -g F", ["-N", "F"], insert("-g", "F")),
  shadows(
    "has an option for a value",
    '-A OUTPUT -m string ! --string "-p" --algo bm -j ACCEPT',
    insert("-m", "string", "--algo", "bm", "!", "--string", "-p", "-j", "ACCEPT"),
  ),
  shadows(
    "has an option for a comment",
    "-A OUTPUT -m comment --comment -o -m comment --comment lo -j ACCEPT",
    insert(...comment("-o"), ...comment("lo"), "-j", "ACCEPT"),
  ),
  shadows(
    "has an option for a prefix",
    '-A OUTPUT -m comment --comment "-p udp" -j ACCEPT',
    insert(...comment("-p udp"), "-j", "ACCEPT"),
  ),
  shadows(
    "leads to a chain that is named like a target",
    "-A OUTPUT -j ULOG",
    ...accepting("X"),
    insert("-j", "X"),
    ["-E", "X", "ULOG"],
  ),
  shadows(
    "has a condition in an inverted interface's name",
    "-A OUTPUT ! -o a -p udp -j ACCEPT",
    insert("!", "-o", "a -p udp", "-j", "ACCEPT"),
  ),
  shadows(
    "gives the rest of itself to another chain",
    "-A OUTPUT -j G",
    ["-N", "F"],
    ["-N", "G"],
    ["-N", "GG"],
    ["-A", "G", "!", "-o", "a -j F\n-A GG", "-j", "ACCEPT"],
    insert("-j", "G"),
  ),
  hides(
    "gives names to a match that does not quote them",
    `${openQuote} -m recent --set --name -p`,
    insert("-m", "recent", "--set", "--name", "-p", "-j", "ACCEPT"),
  ),
  hides(
    "leads to a chain with a quote in its name",
    'a chain of an odd name: :AB"C',
    ...accepting('AB"C'),
    insert("-j", 'AB"C'),
  ),
  hides(
    "leads to a chain with a hard blank in its name",
    "a chain of an odd name: :NB\\u00a0SP",
    ...accepting("NB\u00a0SP"),
    insert("-j", "NB\u00a0SP"),
  ),
  hides(
    "holds our jump in its comment",
    openQuote,
    noJump,
    insert(...comment(`x\n${outboundJump}\n-A OUTPUT ${'"'}`), "-j", "ACCEPT"),
  ),
  hides(
    "holds our chain in its comment",
    openQuote,
    insert(...comment("x\n:PROXY_INIT_OUTPUT - [0:0]\n-A q"), "-j", "ACCEPT"),
  ),
  hides(
    "ends the table in its comment",
    openQuote,
    insert(...comment("x\nCOMMIT\n*filter\n:OUTPUT ACCEPT [0:0]\n-A q"), "-j", "ACCEPT"),
  ),
  hides("has a line break for a comment", openQuote, insert(...comment("\n"), "-j", "ACCEPT")),
  {
    ...hides(
      "is our jump in the name of an interface",
      "a rule that ends in the name of an interface: -A OUTPUT -o a",
      noJump,
      insert("-o", "a\n-A OUTPUT", ...comment("sluice/outbound"), "-j", "PROXY_INIT_OUTPUT"),
    ),
    holds: true,
  },
  hides(
    "is our jump in the name that a match takes",
    "a match that prints names as they are (recent): -A OUTPUT -m recent --set --name a --mask",
    noJump,
    insert(
      ...["-m", "recent", "--set", "--name"],
      `a --mask 255.255.255.255 --rsource\n-A OUTPUT -m comment --comment sluice -j PROXY_INIT_OUTPUT\n-A OUTPUT -m recent --set --name b`,
      ...["-j", "ACCEPT"],
    ),
  ),
  hides(
    "closes a comment's quote by an interface's name",
    openQuote,
    insert("-o", '"b', ...comment(" \n-A OUTPUT"), "-j", "ACCEPT"),
  ),
];

/** Programs run by whoever may write rules in the netns. */
const toolOf = ({ backend, family }: (typeof places)[number]) =>
  `${family === "ipv4" ? "iptables" : "ip6tables"}-${backend}`;

describe.for(places)("over $backend, $family", (place) => {
  const conf = stateConf(place.backend, place.family);
  const tool = toolOf(place);

  test.for(named(tricks, ({ what }) => what))(
    "nobody is told that all is well when a rule %s",
    ([, { write, kind, found, holds }], { attachment }) => {
      const { netns, call } = attachment;
      const own = { netns, ...place };
      expect(call("ADD", conf)).toMatchObject({ exitCode: 0 });
      for (const words of write) netns.run(tool, ["-t", "nat", ...words]);
      const foreign = foreignRules(save(own));

      const checked = answerOf(call("CHECK", conf));
      expect(checked.code).toBe(100);
      expect(checked.details).toContain(`${kind} (${place.family} nat`);
      expect(checked.details).toContain(found);

      const added = answerOf(call("ADD", conf));
      if (kind === "shadowed-jump") {
        // Our jump is put ahead of it, and then all is well.
        expect(added.code).toBe(undefined);
        expect(call("CHECK", conf)).toMatchObject({ exitCode: 0 });
      } else {
        expect(added.code).toBe(101);
        expect(added.msg).toContain(found.slice(0, 60));
        expect(call("CHECK", conf)).toMatchObject({ exitCode: 1 });
      }

      const deleted = call("DEL", conf);
      expect(deleted).toMatchObject({ exitCode: 0, stdout: "" });
      expect(deleted.stderr.includes("PROXY_INIT_OUTPUT is left, empty")).toBe(holds === true);
      expect(foreignRules(save(own))).toStrictEqual(foreign);
      expect(save(own)).not.toContain("--to-ports 4140");
      expect(attachment.records()).toStrictEqual(holds === true ? ["lab,c1,eth0.json"] : []);
    },
  );
});

// Line by line, whatever table they claim to be of.
function foreignRules(saved: string): string[] {
  return saved.split("\n").filter((line) => !line.includes("PROXY_INIT") && !/^[#:]/.test(line));
}

function answerOf({ stdout, stderr }: CniAnswer) {
  const longest = Math.max(...stderr.split("\n").map((line) => line.length), stdout.length);
  expect(longest).toBeLessThan(8_192);
  const answer: { code?: number; msg?: string; details?: string } = JSON.parse(stdout);
  return answer;
}
