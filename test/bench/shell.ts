// The ways without a plugin, as shell scripts: the least that has to be done, and what the init container does. Pure.
// Each takes the netns' path as its argument; what it starts, it starts as a shell does.
import type { Backend, Family } from "../../src/netfilter/table.ts";
import { rules } from "./conf.ts";

export type Where = { readonly families: readonly Family[]; readonly backend: Backend };

/** What restore reads, for either family. */
export const restoreText: string = ["*nat", ...rules, "COMMIT", ""].join("\n");

/** One restore a family, side by side, of the file that is the second argument. */
export function restoreScript({ families, backend }: Where): string {
  return sideBySide(families.map((family) => `${restore(family, backend)} <"$2"`));
}

/** One save a family, side by side. */
export function saveScript({ families, backend }: Where): string {
  return sideBySide(families.map((family) => save(family, backend)));
}

/** linkerd-init: looks, then one process a rule, then looks again; one family after the other. */
export function initScript({ families, backend }: Where): string {
  const lines = families.flatMap((family) => [
    save(family, backend),
    ...rules.map((rule) => `${enter} ${toolOf(family, backend)} -t nat ${rule}`),
    save(family, backend),
  ]);
  return `set -e\n${lines.join("\n")}\n`;
}

// Two at most: `wait $!` is for the last that was put aside.
function sideBySide(commands: readonly string[]): string {
  const aside = commands.slice(0, -1).map((command) => `${command} &`);
  return ["set -e", ...aside, ...commands.slice(-1), "wait $!", ""].join("\n");
}

const enter = 'nsenter --net="$1" --';

function restore(family: Family, backend: Backend): string {
  return `${enter} ${toolOf(family, backend)}-restore --noflush`;
}

function save(family: Family, backend: Backend): string {
  return `${enter} ${toolOf(family, backend)}-save -t nat`;
}

/** The family's program of a backend, without -restore or -save. */
export function toolOf(family: Family, backend: Backend): string {
  return `${family === "ipv4" ? "iptables" : "ip6tables"}-${backend}`;
}
