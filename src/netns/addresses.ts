// The addresses inside a netns, for attachments whose prevResult names none. Edge: one child.
import { CniError, errorCode } from "../cni/error.ts";
import type { ExecResult } from "./exec.ts";
import type { Host } from "./host.ts";
import type { Netns } from "./path.ts";

/** With what, and for how long, to look into a netns. */
export type Looking = { readonly host: Host; readonly timeoutMs: number };

/**
 * The netns' addresses, without loopback and link-local ones: those say nothing about which family a pod speaks.
 * Read from the kernel's own files, which need no tool but cat. The first is in every netns; that of IPv6 need not be.
 * @throws CniError 11 or 102 when it cannot be looked: a family that is not seen would pass the proxy by.
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
      "/proc/self/net/dev",
      "/proc/self/net/fib_trie",
      "/proc/self/net/if_inet6",
    ],
    env: { PATH: path, LC_ALL: "C" },
    outputs: 2,
    timeoutMs,
  });
  const [text = ""] = result.outputs;
  if (result.exitCode !== 0 && !text.startsWith("Inter-|")) throw unreadable(netns, result);
  return [...ipv4Addresses(text), ...ipv6Addresses(text)];
}

function unreadable({ path }: Netns, result: ExecResult): CniError {
  const { exitCode, timedOut, startError, outputs } = result;
  const said = startError || (outputs[1] ?? "").trim().split("\n", 1)[0];
  const reason = timedOut ? "no answer within the deadline" : said || `exit status ${exitCode}`;
  return new CniError(
    timedOut ? errorCode.tryAgainLater : errorCode.netnsUnusable,
    `the addresses in netns ${path} cannot be read: ${reason}`,
    { details: "prevResult names none, so the pod's families are not known" },
  );
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
