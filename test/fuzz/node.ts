// A node that nothing can be hurt on: a netns that plays the host, a pod, and a mount namespace in which all is read-only but
// one directory. The plugin is called there with any environment and any bytes on stdin.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { type LabNetns, makeNetns } from "../lab/netns.ts";
import { type CniAnswer, plugin } from "../lab/plugin.ts";
import { runInside } from "../level/faults/run/tables.ts";

export type FuzzNode = {
  readonly host: LabNetns;
  readonly pod: LabNetns;
  /** All that can be written to. Calls are made in it, and have their state and their log in it. */
  readonly dir: string;
  readonly call: (
    env: Readonly<Record<string, string>>,
    stdin: string | Uint8Array,
  ) => Promise<CniAnswer & { readonly ended: boolean }>;
  /** All that is in the directory: paths, `/` at the end of a directory's. */
  readonly files: () => string[];
  /** The text of all files but the kubeconfig. */
  readonly written: () => string;
  readonly remove: () => void;
};

/** So long a call may take at most; its own deadline is much shorter. */
const patienceMs = 60_000;

/** Makes the node. `kubeconfig` is the text of the file of that name in its directory. */
export function makeFuzzNode(kubeconfig: string): FuzzNode {
  const [host, pod] = [makeNetns("host"), makeNetns("pod")];
  const dir = mkdtempSync(join(tmpdir(), "slc-fuzz-"));
  mkdirSync(join(dir, "etc"));
  writeFileSync(join(dir, "etc/kubeconfig"), kubeconfig, { mode: 0o600 });
  const files = () => namesIn(dir).filter((name) => !name.startsWith("etc/"));
  return {
    host,
    pod,
    dir,
    call: async (env, stdin) => {
      const variables = Object.entries(env).map(([key, value]) => `${key}=${value}`);
      const result = await execa(
        "nsenter",
        [`--net=${host.path}`, "--", ...boxed(dir), ...variables, plugin],
        {
          input: stdin,
          reject: false,
          stripFinalNewline: false,
          timeout: patienceMs,
        },
      );
      const { exitCode, stdout, stderr } = result;
      return { exitCode, stdout, stderr, ended: !result.timedOut };
    },
    files,
    written: () =>
      files()
        .filter((name) => !name.endsWith("/"))
        .map((name) => readFileSync(join(dir, name), "utf8"))
        .join("\n"),
    remove: () => {
      for (const netns of [host, pod]) netns.remove();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

// The directory is mounted on itself: it stays writable when what it stands in no longer is.
function boxed(dir: string): string[] {
  const script = `mount --bind "$1" "$1" && mount -o remount,ro,bind / && cd "$1" && shift && exec env -i "$@"`;
  return ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c", script, "sh", dir];
}

function namesIn(dir: string): string[] {
  const entries = readdirSync(dir, { recursive: true, withFileTypes: true });
  return entries.map((entry) => {
    const path = join(entry.parentPath, entry.name).slice(dir.length + 1);
    return entry.isDirectory() ? `${path}/` : path;
  });
}

const everything = `
nft --handle list ruleset
iptables-legacy-save --counters
ip6tables-legacy-save --counters`;

/** All rules of a netns, in both backends and families, with handles and counters. */
export async function rulesIn(netns: LabNetns): Promise<string> {
  const text = await runInside(netns, everything);
  return text.replaceAll(/^# (?:Generated|Completed|Warning).*\n?/gm, "").trim();
}
