// Everything that STATUS' answer depends on, as one text: if it has not changed, the answer still holds.
import { statSync } from "node:fs";
import type { Settings } from "../conf/settings.ts";
import { backends } from "../netfilter/table.ts";
import type { Toolbox } from "../netns/toolbox.ts";

const suffixes = ["", ...backends.map((backend) => `-${backend}`)];
const programs = [
  "nsenter",
  "unshare",
  ...["iptables", "ip6tables"].flatMap((prefix) =>
    suffixes.flatMap((suffix) => [`${prefix}${suffix}-restore`, `${prefix}${suffix}-save`]),
  ),
];

/** A text that is the same as long as nothing changed that ADD needs. Looks at files, and starts nothing. */
export function circumstancesOf(
  { backend, families, pods }: Pick<Settings, "backend" | "families" | "pods">,
  { shell, find }: Toolbox,
): string {
  const files = [shell, pods.kubernetes?.kubeconfig || undefined, ...programs.map(find)];
  return [backend, families.includes("ipv6"), ...files.map(identityOf)].join(" ");
}

function identityOf(file: string | undefined): string {
  if (file === undefined) return "-";
  try {
    const { dev, ino, size, mtimeMs } = statSync(file);
    return [dev, ino, size, mtimeMs].join(":");
  } catch {
    // Named and not there, which is not the same as not named: what needs it will say so.
    return "absent";
  }
}
