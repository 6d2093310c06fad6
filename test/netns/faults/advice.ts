// What the plugin advises people to do, by what is wrong, and the conf that the tests of it use.
import type { Family } from "../../../src/netfilter/table.ts";
import { linkerd } from "../../lab/states.ts";
import { addressOf, confOf } from "../level.ts";

export const advice = {
  lock: "another program is changing the rules; try again",
  lockFile: "the lock file cannot be opened: check that /run is writable",
  noNft: "the kernel has no nf_tables: load nf_tables, or set iptables-mode to legacy",
  noNat:
    "the kernel has no nat table for this backend: modprobe iptable_nat (ip6table_nat), or use nft",
  root: "root with CAP_NET_ADMIN is needed; with SELinux, look for a denial",
  none: "see the tool's message; nothing of ours is left half-way",
  install: "install iptables 1.8 or later, or set linkerd.iptables-mode to what is there",
  cannotRun: "the program cannot be run: install iptables",
  library: "the node's iptables has no extension REDIRECT: install all of iptables",
  modules:
    "the kernel lacks a match or target: modprobe xt_owner xt_REDIRECT xt_multiport xt_comment",
} as const;

export const modprobe = (name: string): string =>
  `the kernel lacks this match or target: modprobe xt_${name}, or reboot after a kernel update`;
/** The conf of the states, with this iptables-mode, for a pod of these families. */
export function modeConf(mode: string, ...of: readonly Family[]) {
  return confOf({
    linkerd: { ...linkerd, "iptables-mode": mode },
    addresses: of.map((family) => addressOf[family]),
  });
}
