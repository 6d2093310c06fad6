// The cases without a plugin: the least that is to be done, and what the init container does. Edge: makes netns and files.
import { type Case, crowdEach, familiesLabel } from "./case.ts";
import { searchPath } from "./conf.ts";
import type { Lab } from "./lab.ts";
import { type Job, run } from "./runner.ts";
import { initScript, restoreScript, restoreText, saveScript, toolOf, type Where } from "./shell.ts";

// The lock of legacy tools in an init container is a file of the pod's own, too.
const env = { PATH: searchPath, XTABLES_LOCKFILE: "/proc/self/ns/net" };

/** How the init container is named in the results. */
export const initWay = "init container";

/** The pinned Node, doing nothing. */
export function bareNode(node: string): Case {
  const job: Job = { argv: [node, "-e", "0"], env };
  const label = { action: "node -e 0", families: "", backend: "", source: "", way: "bare" };
  return { ...label, prepare: () => [job], mayFail: false, each: 1 };
}

/** nsenter and restore, in a new netns each time. */
export function bareRestore(lab: Lab, where: Where): Case {
  const job = restoreIn(lab, where);
  return makeCase(where, "nsenter + restore", inNewNetns(lab, job));
}

/** nsenter and save, in a netns that has rules. */
export function bareSave(lab: Lab, where: Where): Case {
  const job = jobOf(lab, where, { ...saving, script: saveScript(where), argument: "" });
  let netns: string | undefined;
  return makeCase(where, "nsenter + save", () => {
    if (netns === undefined) {
      netns = lab.netns();
      run([restoreIn(lab, where)(netns)]);
    }
    return [job(netns)];
  });
}

/** All that the init container runs, in a new netns each time. */
export function initContainer(lab: Lab, where: Where): Case {
  const prepare = inNewNetns(lab, initIn(lab, where));
  return { ...makeCase(where, "ADD, new pod", prepare), way: initWay };
}

/** The same for many pods at once. */
export function initCrowd(lab: Lab, where: Where & { readonly size: number }): Case {
  const { size } = where;
  const job = initIn(lab, where);
  const prepare = () => lab.passing(size).map(job);
  const made = makeCase(where, `${size} ADDs at once`, prepare);
  return { ...made, way: initWay, each: crowdEach };
}

type JobIn = (netns: string) => Job;

function inNewNetns(lab: Lab, job: JobIn): Case["prepare"] {
  return () => lab.passing(1).map(job);
}

function restoreIn(lab: Lab, where: Where): JobIn {
  const stdin = lab.file("restore.txt", restoreText);
  const job = jobOf(lab, where, { ...restoring, script: restoreScript(where), argument: stdin });
  return (netns) => ({ ...job(netns), stdin });
}

function initIn(lab: Lab, where: Where): JobIn {
  const script = lab.file(`init-${nameOf(where)}.sh`, initScript(where));
  return (netns) => ({ argv: ["sh", script, netns], env });
}

const restoring = { tool: "restore", options: ["--noflush"] };
const saving = { tool: "save", options: ["-t", "nat"] };

type Work = typeof saving & { readonly script: string; readonly argument: string };

// For one family there is no shell: the tool itself is the least.
function jobOf(lab: Lab, where: Where, { tool, options, script, argument }: Work): JobIn {
  const [family, other] = where.families;
  if (family !== undefined && other === undefined) {
    const command = [`${toolOf(family, where.backend)}-${tool}`, ...options];
    return (netns) => ({ argv: ["nsenter", `--net=${netns}`, "--", ...command], env });
  }
  const file = lab.file(`${tool}-${nameOf(where)}.sh`, script);
  return (netns) => ({ argv: ["sh", file, netns, argument], env });
}

function makeCase(where: Where, action: string, prepare: Case["prepare"]): Case {
  const { families, backend } = where;
  const label = { action, families: familiesLabel(families), backend, source: "", way: "bare" };
  return { ...label, prepare, mayFail: false, each: 1 };
}

function nameOf({ families, backend }: Where): string {
  return `${backend}-${familiesLabel(families)}`;
}
