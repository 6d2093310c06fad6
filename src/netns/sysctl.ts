// Reads and writes one kernel setting of a netns. Edge: one child each. /proc/sys/net shows the netns of who opens it.
import { CniError, errorCode } from "../cni/error.ts";
import type { ExecResult } from "./exec.ts";
import type { Looking } from "./host.ts";
import type { Netns } from "./path.ts";
import { readStartFailure } from "./start-failure.ts";

/**
 * The setting's value.
 * @throws CniError 102 when the kernel does not have it or the netns cannot be entered, 11 when there was no answer in time.
 */
export function readSysctl(netns: Netns, name: string, looking: Looking): Promise<string> {
  return runIn(netns, looking, [looking.host.find("cat") ?? "cat", pathOf(name)]);
}

/** Sets it. @throws CniError 102 or 11 as above. */
export async function writeSysctl(
  netns: Netns,
  setting: { readonly name: string; readonly value: string },
  looking: Looking,
): Promise<void> {
  const script = 'echo "$1" >"$2"';
  await runIn(netns, looking, [
    "/bin/sh",
    "-c",
    script,
    "sluice",
    setting.value,
    pathOf(setting.name),
  ]);
}

async function runIn(netns: Netns, looking: Looking, command: readonly string[]): Promise<string> {
  const { host, timeoutMs } = looking;
  const { exec, find, path } = host;
  const result = await exec({
    argv: [find("nsenter") ?? "nsenter", `--net=${netns.handle}`, "--", ...command],
    env: { PATH: path, LC_ALL: "C" },
    outputs: 2,
    timeoutMs,
  });
  const [stdout = ""] = result.outputs;
  if (result.exitCode === 0) return stdout.trim();
  const { code, problem } = problemOf(result);
  throw new CniError(code, `a kernel setting of netns ${netns.path} cannot be used`, {
    details: `${command.at(-1)}: ${problem}`,
  });
}

function problemOf(result: ExecResult): Pick<CniError, "code"> & { readonly problem: string } {
  const { exitCode, timedOut, startError, outputs } = result;
  const stderr = outputs[1] ?? "";
  const { tryAgainLater, netnsUnusable } = errorCode;
  if (timedOut) return { code: tryAgainLater, problem: "no answer within the deadline; try again" };
  const failure = readStartFailure([startError, stderr]);
  if (failure !== undefined) {
    const code = failure.isPassing ? tryAgainLater : netnsUnusable;
    return { code, problem: `${failure.said}; ${failure.advice}` };
  }
  if (exitCode === undefined && startError === "") {
    return { code: tryAgainLater, problem: "the program was killed; try again" };
  }
  const said = startError || stderr.trim() || `exit status ${exitCode}`;
  return { code: netnsUnusable, problem: `${said}; ${adviceFor(said)}` };
}

function pathOf(name: string): string {
  return `/proc/sys/${name.replaceAll(".", "/")}`;
}

function adviceFor(said: string): string {
  if (/permission denied|operation not permitted/i.test(said)) {
    return "root with CAP_NET_ADMIN is needed; with SELinux, look for a denial";
  }
  if (/read-only file system/i.test(said)) return "/proc/sys must be writable for the runtime";
  return "is nf_conntrack loaded?";
}
