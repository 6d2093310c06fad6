// nat tables as a pod with NET_ADMIN, or another program, may leave them: foreign chains and rules of odd spelling, and what
// is ours whole, in part, twice, in another order, or jumped to from where it should not be.
import fc from "fast-check";
import type { Ruleset } from "../../../src/netfilter/table.ts";
import { ledChains, natIn } from "../../lab/rulesets.ts";
import { anyText } from "./text.ts";

const builtins = ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"] as const;
const ownNames = ["PROXY_INIT_REDIRECT", "PROXY_INIT_OUTPUT"] as const;

/** Chain names that are foreign; some are spelt like a target, or like an option. */
const foreignNames = [
  "FOREIGN",
  "DOCKER_OUTPUT",
  "ULOG",
  "-p",
  "ACCEPT2",
  "a\u00a0b",
  'q"x',
] as const;

/** Matches as save prints them; many only look as if they excluded what we redirect. */
export const match: fc.Arbitrary<string> = fc.constantFrom(
  "-p tcp",
  "-p udp",
  "! -p udp",
  "! -p tcp",
  "-p tcp -m tcp --dport 8080",
  "-p tcp -m tcp ! --dport 8080",
  "-o lo",
  "! -o lo",
  "-o eth0",
  "-d 127.0.0.11/32",
  "! -d 127.0.0.0/8",
  "-s 10.0.0.0/8",
  '-m string --string "-p" --algo bm',
  '-m string ! --string "-o" --algo bm',
  "-m recent --set --name -p --mask 255.255.255.255 --rsource",
  "-m owner --uid-owner 2102",
  "-m mark --mark 0x1",
  "-m multiport --dports 1:65535",
  "-m addrtype --dst-type LOCAL",
);

// As save prints a comment: in quotes where it is not of letters alone, with quotes and backslashes escaped.
const comment = anyText
  .map((text) => text.replaceAll(/[\n\r\0]/g, "").slice(0, 200))
  .map((text) => (/^[A-Za-z0-9_-]+$/.test(text) ? text : quoted(text)))
  .map((text) => `-m comment --comment ${text}`);

function quoted(text: string): string {
  return `"${text.replaceAll(/(["\\'])/g, "\\$1")}"`;
}

const target = fc.constantFrom(
  "-j ACCEPT",
  "-j DROP",
  "-j RETURN",
  "-j REDIRECT --to-ports 15001",
  "-j DNAT --to-destination 10.0.0.1:80",
  "-j LOG",
  "-j MARK --set-xmark 0x1/0xffffffff",
  "",
);

const conditions = fc.array(
  fc.oneof({ weight: 4, arbitrary: match }, { weight: 1, arbitrary: comment }),
  {
    maxLength: 2,
  },
);

function rule(chain: string, parts: readonly string[], end: string): string {
  return [`-A ${chain}`, ...parts, end].filter((part) => part !== "").join(" ");
}

/** A table, as iptables-save's lines by chain; each chain that is jumped to is there. */
export type Chains = ReadonlyMap<string, readonly string[]>;

/** Jumps into these chains, and rules that end, from a chain. */
function rulesIn(chain: string, jumpsTo: readonly string[]): fc.Arbitrary<string[]> {
  const end = fc.oneof(
    target,
    fc.constantFrom(...jumpsTo).chain((name) => fc.constantFrom(`-j ${name}`, `-g ${name}`)),
  );
  return fc.array(
    fc.tuple(conditions, end).map(([parts, last]) => rule(chain, parts, last)),
    { maxLength: 4 },
  );
}

/** Any table around this ruleset's own chains, which are there whole, in part, or not at all. */
export function anyTable(ruleset: Ruleset): fc.Arbitrary<Chains> {
  const foreign = fc.subarray([...foreignNames]);
  const own = fc.subarray([...ownNames]);
  return fc.tuple(foreign, own).chain(([foreigners, ours]) => {
    const inBuiltins = builtins.map((name) =>
      withOurs(rulesIn(name, [...foreigners, ...ours, "ACCEPT"].filter(isChainOrTarget)), ruleset, {
        name,
        ours,
      }),
    );
    const inForeign = foreigners.map((name) =>
      rulesIn(name, ours.length > 0 ? ours : ["ACCEPT"]).map((rules) => [name, rules] as const),
    );
    const inOwn = ours.map((name) =>
      ownRules(ruleset, name).map((rules) => [name, rules] as const),
    );
    return fc.tuple(...inBuiltins, ...inForeign, ...inOwn).map((entries) => new Map(entries));
  });
}

function isChainOrTarget(name: string): boolean {
  return name !== "-p";
}

type Where = { readonly name: string; readonly ours: readonly string[] };

// Our jumps among the others: none, one, or several, in any place.
function withOurs(
  others: fc.Arbitrary<string[]>,
  ruleset: Ruleset,
  { name, ours }: Where,
): fc.Arbitrary<readonly [string, readonly string[]]> {
  const jumps = ledChains(ruleset).filter((own) => own.hook === name && ours.includes(own.name));
  const there = fc.array(fc.constantFrom(...jumps.map(({ jump }) => jump), ""), { maxLength: 3 });
  return fc.tuple(others, there, fc.nat(4)).map(([rules, found, at]) => {
    const put = found.filter((jump) => jump !== "");
    return [name, [...rules.slice(0, at), ...put, ...rules.slice(at)]] as const;
  });
}

function ownRules(ruleset: Ruleset, name: string): fc.Arbitrary<readonly string[]> {
  const own = natIn(ruleset).chains.find((chain) => chain.name === name);
  const whole = [...(own?.rules ?? [])];
  return fc.oneof(
    fc.constant(whole),
    fc.shuffledSubarray(whole),
    fc
      .tuple(rulesIn(name, ["ACCEPT"]), fc.subarray(whole))
      .map(([foreign, kept]) => [...foreign, ...kept]),
  );
}
