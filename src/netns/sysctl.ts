// Reads and writes one kernel setting of a netns. Edge: one child each. /proc/sys/net shows the netns of who opens it.
import { Fault } from "../fault.ts";
import type { ExecResult } from "./exec.ts";
import type { Looking } from "./host.ts";
import type { Netns } from "./path.ts";
import { readStartFailure } from "./start-failure.ts";
import { entering } from "./toolbox.ts";

/**
 * The setting's value.
 * @throws Fault netns-unusable when the kernel does not have it or the netns cannot be entered, try-again when there was no answer in time.
 */
export function readSysctl(netns: Netns, name: string, looking: Looking): Promise<string> {
  return runIn(netns, looking, [looking.host.toolbox.find("cat") ?? "cat", pathOf(name)]);
}

/** Sets it. @throws Fault netns-unusable or try-again as above. */
export async function writeSysctl(
  netns: Netns,
  setting: { readonly name: string; readonly value: string },
  looking: Looking,
): Promise<void> {
  const script = 'echo "$1" >"$2"';
  await runIn(netns, looking, [
    looking.host.toolbox.shell,
    "-c",
    script,
    "sluice",
    setting.value,
    pathOf(setting.name),
  ]);
}

async function runIn(netns: Netns, looking: Looking, command: readonly string[]): Promise<string> {
  const { host, timeoutMs } = looking;
  const { exec, toolbox } = host;
  const result = await exec({
    argv: [...entering(toolbox, netns.handle), ...command],
    env: toolbox.env,
    outputs: 2,
    timeoutMs,
  });
  const [stdout = ""] = result.outputs;
  if (result.exitCode === 0) return stdout.trim();
  const { kind, problem } = problemOf(result);
  throw new Fault(kind, `a kernel setting of netns ${netns.path} cannot be used`, {
    details: `${command.at(-1)}: ${problem}`,
  });
}

function problemOf(result: ExecResult): Pick<Fault, "kind"> & { readonly problem: string } {
  const { exitCode, timedOut, startError, outputs } = result;
  const stderr = outputs[1] ?? "";
  if (timedOut) return { kind: "try-again", problem: "no answer within the deadline; try again" };
  const failure = readStartFailure([startError, stderr]);
  if (failure !== undefined) {
    const kind = failure.isPassing ? "try-again" : "netns-unusable";
    return { kind, problem: `${failure.said}; ${failure.advice}` };
  }
  if (exitCode === undefined && startError === "") {
    return { kind: "try-again", problem: "the program was killed; try again" };
  }
  const said = startError || stderr.trim() || `exit status ${exitCode}`;
  return { kind: "netns-unusable", problem: `${said}; ${adviceFor(said)}` };
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
