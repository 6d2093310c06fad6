// The addresses inside a netns, for attachments whose prevResult names none. Edge: one child.
import type { Host } from "./host.ts";
import type { Netns } from "./path.ts";

/** With what, and for how long, to look into a netns. */
export type Looking = { readonly host: Host; readonly timeoutMs: number };

/**
 * The netns' addresses, without loopback and link-local ones: those say nothing about which family a pod speaks.
 * Read from the kernel's own files, which need no tool but cat. A look that fails gives none, as an empty netns does.
 */
export async function readAddresses(netns: Netns, looking: Looking): Promise<string[]> {
  const { host, timeoutMs } = looking;
  const { exec, find, path } = host;
  const result = await exec({
    argv: [
      find("nsenter") ?? "nsenter",
      `--net=${netns.handle}`,
      "--",
      find("cat") ?? "cat",
      "/proc/self/net/fib_trie",
      "/proc/self/net/if_inet6",
    ],
    env: { PATH: path, LC_ALL: "C" },
    outputs: 2,
    timeoutMs,
  });
  const text = result.outputs[0] ?? "";
  return [...ipv4Addresses(text), ...ipv6Addresses(text)];
}

/** From fib_trie: an address line, followed by `/32 host LOCAL` for what is the netns' own. */
export function ipv4Addresses(fibTrie: string): string[] {
  const found = fibTrie.matchAll(/^\s+\|-- ([0-9.]+)\n\s+\/32 host LOCAL$/gm);
  const addresses = [...found].map(([, address]) => address ?? "");
  return [...new Set(addresses)].filter((address) => !/^(127\.|169\.254\.)/.test(address));
}

/** From if_inet6: 32 hex digits, then index, prefix length, scope (00 is global), flags, device. */
export function ipv6Addresses(ifInet6: string): string[] {
  const found = ifInet6.matchAll(/^([0-9a-f]{32}) [0-9a-f]+ [0-9a-f]+ 00 /gm);
  return [...found].map(([, digits]) => (digits ?? "").replaceAll(/(....)(?!$)/g, "$1:"));
}
