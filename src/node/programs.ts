// The node's iptables programs: which there are, of which backend, and what their version allows. Edge: runs a program only
// to ask for its version, and only where its name does not tell.
import { realpathSync } from "node:fs";
import { basename } from "node:path";
import type { Tools } from "../netfilter/iptables/tools.ts";
import type { Backend, Family } from "../netfilter/table.ts";
import type { Host } from "../netns/host.ts";

export type Programs = {
  /** The tools under the backend's own names, or under the plain names where those are of that backend. */
  readonly find: (backend: Backend, family: Family) => Promise<Tools | undefined>;
  /** The tools under the plain names, whichever backend they are of; undefined: they gave no answer when asked. */
  readonly findPlain: (
    family: Family,
  ) => Promise<{ tools: Tools; backend: Backend | undefined } | undefined>;
};

/** How long a program may take to say its version. */
export const versionTimeoutMs = 2_000;

/** The iptables programs of a toolbox; nothing is looked for before it is asked for. */
export function openPrograms(host: Host): Programs {
  const kinds = new Map<string, Promise<Kind>>();
  // Each program is asked once: one that does not answer is waited for.
  const kindOf = (program: string) => {
    const kind = kinds.get(program) ?? classify(host, program);
    kinds.set(program, kind);
    return kind;
  };
  const findPlain: Programs["findPlain"] = async (family) => {
    const tools = pair(host, plainName(family));
    if (tools === undefined) return undefined;
    const { backend, waits } = await kindOf(tools.restore);
    return { tools: { ...tools, waits }, backend };
  };
  return {
    findPlain,
    find: async (backend, family) => {
      const named = pair(host, `${plainName(family)}-${backend}`);
      // Programs with a backend in their name are of 1.8 or later.
      if (named !== undefined) return { ...named, waits: true };
      const plain = await findPlain(family);
      return plain?.backend === backend ? plain.tools : undefined;
    },
  };
}

function pair({ toolbox: { find } }: Host, name: string): Omit<Tools, "waits"> | undefined {
  const [restore, save] = [find(`${name}-restore`), find(`${name}-save`)];
  return restore === undefined || save === undefined ? undefined : { restore, save };
}

/** The name that a family's programs have without a backend in it. */
export function plainName(family: Family): string {
  return family === "ipv4" ? "iptables" : "ip6tables";
}

/** `backend` undefined: not known, since the program did not answer. */
type Kind = { readonly backend: Backend | undefined; readonly waits: boolean };

/** What the plain names lead to since 1.8. */
const multi: ReadonlyMap<string, Kind> = new Map([
  ["xtables-nft-multi", { backend: "nft", waits: true }],
  ["xtables-legacy-multi", { backend: "legacy", waits: true }],
]);

async function classify({ exec, toolbox }: Host, program: string): Promise<Kind> {
  const known = multi.get(basename(realpathSync(program)));
  if (known !== undefined) return known;
  const argv: [string, string] = [program, "--version"];
  const request = { argv, env: toolbox.env, outputs: 2, timeoutMs: versionTimeoutMs };
  const { exitCode, outputs } = await exec(request);
  // Ended before it had answered, or never begun: taken for an old one, it would be called without --wait.
  if (exitCode === undefined) return { backend: undefined, waits: false };
  return readVersion(outputs[0] ?? "");
}

/**
 * Reads `iptables-restore v1.8.9 (nf_tables)`. No backend named: older than 1.8, so legacy. No version at all: so old
 * that restore does not know the question.
 */
export function readVersion(said: string): Kind {
  const [, major = "0", minor = "0", patch = "0"] = /v(\d+)\.(\d+)(?:\.(\d+))?/.exec(said) ?? [];
  const number = Number(major) * 1_000_000 + Number(minor) * 1_000 + Number(patch);
  return { backend: said.includes("(nf_tables)") ? "nft" : "legacy", waits: number >= 1_006_002 };
}
