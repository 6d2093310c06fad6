// What the plugin advises people to do, by what is wrong, and the conf that the tests of it use.
import type { Family } from "../../../src/netfilter/table.ts";
import { linkerd } from "../../lab/states.ts";
import { addressOf, confOf } from "../netns/level.ts";

export const advice = {
  lock: "another program is changing the rules; try again",
  lockFile: "the lock file cannot be opened: check that /run is writable",
  noNft: "the kernel has no nf_tables: load nf_tables, or set iptables-mode to legacy",
  noNat:
    "the kernel has no nat table for this backend: modprobe iptable_nat (ip6table_nat), or use nft",
  root: "root with CAP_NET_ADMIN is needed; with SELinux, look for a denial",
  noNftNat:
    "the kernel's nf_tables lacks nat: modprobe nft_chain_nat (nft_chain_nat_ipv4, nft_chain_nat_ipv6 before Linux 5.1), or set iptables-mode to legacy",
  noFamily:
    "the kernel's nf_tables lacks this family: modprobe nf_tables (nf_tables_ipv4, nf_tables_ipv6 before Linux 4.17), or set iptables-mode to legacy",
  memory:
    "memory or descriptors are short for the kernel or in the runtime's cgroup; try again, and see memory.max",
  userNamespace:
    "the kernel refuses a rule that it knows: most likely the netns belongs to another user namespace (hostUsers: false, a rootless runtime), where xt_owner cannot be used",
  none: "see the tool's message; nothing of ours is left half-way",
  install: "install iptables 1.8 or later, or set linkerd.iptables-mode to what is there",
  oneBackend:
    "the rules of one pod go through one backend: let update-alternatives lead both names to the same, or set linkerd.iptables-mode to nft or legacy and install what that lacks",
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
