// A pod's nat tables, looked at and damaged from outside with iptables' own programs: what people and other tools do.
import { execaSync } from "execa";

type Inside = { readonly path: string };

/** The argument list that runs a program in a netns; the process is the program's own. */
export function inNetns(path: string, argv: readonly string[]): string[] {
  return ["nsenter", `--net=${path}`, "--", ...argv];
}

/** The pod's nat rules as all backends of the machine show them. */
export function savedNat(pod: Inside, family: "ipv4" | "ipv6" = "ipv4"): string {
  const prefix = family === "ipv4" ? "iptables" : "ip6tables";
  const results = ["nft", "legacy"].map((backend) => iptables(pod, [`${prefix}-${backend}-save`]));
  const shown = results.filter(({ exitCode }) => exitCode !== notFound);
  const failed = shown.find(({ exitCode }) => exitCode !== 0);
  if (shown.length === 0) throw new Error(`no ${prefix}-nft-save or ${prefix}-legacy-save`);
  // An empty text would say that there are no rules.
  if (failed !== undefined) throw new Error(`${failed.command}: ${failed.stderr}`);
  return shown.map(({ stdout }) => stdout).join("\n");
}

/** Applies lines such as `-D CHAIN ...` to the pod's nat table. */
export function changeNat(pod: Inside, backend: string, lines: readonly string[]): void {
  const input = ["*nat", ...lines, "COMMIT", ""].join("\n");
  must(iptables(pod, [`iptables-${backend}-restore`, "--noflush"], input));
}

/** Puts a save in the place of the pod's whole nat table. */
export function loadNat(pod: Inside, backend: string, save: string): void {
  must(iptables(pod, [`iptables-${backend}-restore`], save));
}

/** `env`, when there is no such program. */
const notFound = 127;

// Without a lock file of its own, legacy would make the machine's /run/xtables.lock.
function iptables(pod: Inside, argv: readonly string[], input = "") {
  const enter = inNetns(pod.path, ["env", "XTABLES_LOCKFILE=/proc/self/ns/net", ...argv]);
  return execaSync("env", enter, { input, reject: false });
}

function must(result: ReturnType<typeof iptables>): void {
  if (result.exitCode !== 0) throw new Error(`${result.command}: ${result.stderr}`);
}
