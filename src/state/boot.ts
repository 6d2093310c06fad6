// Which boot of the node this is: what was kept in another one says nothing of the kernel of today. Edge.
import { readFileSync } from "node:fs";

/** The kernel's own name for this boot; "" where it tells none. */
export function bootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    // Not told by this kernel: then nothing that is kept names a boot either.
    return "";
  }
}
