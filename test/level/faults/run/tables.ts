// All nat tables of a netns, both backends and families, read and brought into a state with one process each. Nothing
// here blocks: many netns are worked on at once.
import { execa } from "execa";
import { type Backend, backends, type Family, families } from "../../../../src/netfilter/table.ts";
import type { LabNetns } from "../../../lab/netns.ts";
import { complete, foreignLines, ownLines, type StateName, states } from "../../../lab/states.ts";

/** One table of a netns. */
export type Which = { readonly backend: Backend; readonly family: Family };

export const everyTable: readonly Which[] = backends.flatMap((backend) =>
  families.map((family) => ({ backend, family })),
);

/** What a table holds: lines of ours, and of others. */
export type Content = { readonly own: readonly string[]; readonly foreign: readonly string[] };

/** Tables by `nft ipv4`. */
export type Tables = ReadonlyMap<string, Content>;

export function nameOf({ backend, family }: Which): string {
  return `${backend} ${family}`;
}

/** What is ours in a table that is as it should be, and in one that is empty of it. */
export const ours: Content["own"] = complete;

/** Runs a shell script in the netns and gives its stdout; throws when it fails. */
export async function runInside(netns: LabNetns, script: string, input = ""): Promise<string> {
  const { stdout } = await execa("nsenter", [`--net=${netns.path}`, "--", "sh", "-ec", script], {
    input,
    env: { XTABLES_LOCKFILE: "/proc/self/ns/net" },
    stripFinalNewline: false,
  });
  return stdout;
}

/** Brings these tables into a state; those of other states stay as they are. */
export async function load(
  netns: LabNetns,
  which: readonly Which[],
  state: StateName,
): Promise<void> {
  if (states[state] === "") return;
  const commands = which.map((table) => `echo "$text" | ${toolOf(table)}-restore --counters`);
  await runInside(netns, `text=$(cat)\n${commands.join("\n")}`, states[state]);
}

/** Reads all tables. */
export async function readAll(netns: LabNetns): Promise<Tables> {
  const commands = everyTable.map((which) => {
    return `echo "== ${nameOf(which)}"; ${toolOf(which)}-save --counters 2>/dev/null`;
  });
  const text = await runInside(netns, commands.join("\n"));
  const parts = text.split(/^== /m).slice(1);
  return new Map(
    parts.map((part) => {
      const [name = "", ...lines] = part.split("\n");
      const saved = lines.join("\n");
      return [name, { own: ownLines(saved), foreign: foreignLines(saved) }] as const;
    }),
  );
}

function toolOf({ backend, family }: Which): string {
  return `${family === "ipv4" ? "iptables" : "ip6tables"}-${backend}`;
}
