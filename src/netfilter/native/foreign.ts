// Finds rules of nft's own in the tables of iptables, as nft shows them. Pure. iptables-save shows no table that holds some
// kinds of them, and of other kinds only a part.

import { couldMatch, type Flow } from "./match.ts";
import { field, type NativeView, type Statement, textField } from "./view.ts";

/** Chains of one of iptables' tables, besides the builtin ones, with rules that are probably not iptables' own. */
export function foreignRules(view: NativeView, table: string): string[] {
  const rules = view.rules.filter((rule) => rule.table === table && !builtin.has(rule.chain));
  const foreign = rules.filter(({ statements }) => !statements.every(isIptables));
  return [...new Set(foreign.map(({ chain }) => chain))];
}

const builtin = new Set(["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"]);

const iptablesWords = new Set([
  ...["match", "xt", "counter", "limit", "log", "accept", "drop", "return", "jump", "goto"],
]);
const iptablesKeys = new Set([
  "l4proto",
  "iifname",
  "oifname",
  "protocol",
  "nfproto",
  "mark",
  "pkttype",
]);

function isIptables(statement: Statement): boolean {
  const { word, value } = statement;
  if (word !== "match") return iptablesWords.has(word);
  const left = field(value, "left");
  const meta = field(left, "meta");
  const known = meta === undefined ? isHeader(left) : iptablesKeys.has(textField(meta, "key"));
  return known && !isCut(statement);
}

function isHeader(left: unknown): boolean {
  return field(left, "payload") !== undefined || field(left, "&") !== undefined;
}

/**
 * Chains of one of iptables' tables with rules that save shows without what they look up: iptables makes no rule with a
 * set or a map. Those that only packets leaving by other hooks come to do not count, nor rules that none of ours can match.
 */
export function partlyShown(view: NativeView, table: string, flow: Flow): string[] {
  const rules = view.rules.filter((rule) => rule.table === table && !others.has(rule.chain));
  const cut = rules.filter(({ statements }) => {
    return statements.some(isCut) && couldMatch(statements, flow);
  });
  return [...new Set(cut.map(({ chain }) => chain))];
}

const others = new Set(["INPUT", "POSTROUTING"]);

function isCut({ word, value }: Statement): boolean {
  if (word === "vmap") return true;
  const right = word === "match" ? field(value, "right") : undefined;
  return field(right, "set") !== undefined || (typeof right === "string" && right.startsWith("@"));
}
