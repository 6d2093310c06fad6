// Which rights the plugin, and so what it starts, runs without. Edge: reads one file, when something was refused.
import { readFileSync } from "node:fs";

/** The rights that our children need, by their bit in a capability mask (linux/capability.h). */
const bits = { CAP_NET_ADMIN: 12n, CAP_NET_RAW: 13n } as const;

export type Capability = keyof typeof bits;

/** True when the process surely runs without it. */
export function lacksCapability(name: Capability): boolean {
  const mask = /^CapEff:\s*([0-9a-f]+)$/m.exec(statusText())?.[1];
  return mask !== undefined && ((BigInt(`0x${mask}`) >> bits[name]) & 1n) === 0n;
}

function statusText(): string {
  try {
    return readFileSync("/proc/self/status", "utf8");
  } catch {
    // No /proc: nothing is known, and the tool's own words have to do.
    return "";
  }
}
