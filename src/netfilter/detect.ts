// Decides through which backend rules are written where nobody said so. Edge: runs the tools, and leaves no trace of it:
// looking at hints makes no table (see client.ts), and the trial has a netns of its own.
import { CniError, errorCode } from "../cni/error.ts";
import { equip } from "./choice.ts";
import type { Client, Job } from "./client.ts";
import { converge } from "./converge.ts";
import { type Backend, backends, families, type Ruleset } from "./table.ts";
import type { Toolbox } from "./toolbox.ts";

/** What a detection found. */
export type Decision = {
  readonly backend: Backend;
  readonly reason: string;
  /** Made without a hint, by trial only: a hint that shows later wins, until the first pod is set. */
  readonly provisional: boolean;
  /** The hints are in both backends, so one of them is stale. */
  readonly doubtful?: boolean | undefined;
};

/** What a detection looks with. */
export type Detecting = {
  readonly client: Client;
  readonly toolbox: Toolbox;
  readonly remainingMs: () => number;
  readonly sleep: (ms: number) => Promise<void>;
};

/** Chains that kubelets make in mangle for this very question (KEP-3178), and that older ones make to watch for flushes. */
const hintChains = ["KUBE-IPTABLES-HINT", "KUBE-KUBELET-CANARY"];

/**
 * The backend that the node's kubelet uses, by its hint chains in the node's own netns; undefined where there are none,
 * which is normal. nft is looked at first: both have them after a node changed over, and then the new one counts.
 */
export async function findHint(detecting: Detecting): Promise<Decision | undefined> {
  const jobs = (
    await Promise.all(backends.flatMap((backend) => hintJobs(detecting, backend)))
  ).flat();
  if (jobs.length === 0) return undefined;
  const outcomes = await detecting.client("host", jobs, detecting.remainingMs());
  const hinted = outcomes.filter(({ saveStatus, saved }) => saveStatus === 0 && holdsHint(saved));
  const found = [...new Set(hinted.map(({ job }) => job.backend))];
  const [backend] = found;
  if (backend === undefined) return undefined;
  const both = found.length > 1 ? " (and legacy has them too: left from before?)" : "";
  return {
    backend,
    reason: `the kubelet's hint chains are in ${backend}${both}`,
    provisional: false,
    ...(found.length > 1 ? { doubtful: true } : {}),
  };
}

function hintJobs({ toolbox }: Detecting, backend: Backend): Promise<Job[]>[] {
  return families.map(async (family): Promise<Job[]> => {
    const tools = await toolbox.find(backend, family);
    return tools === undefined ? [] : [{ family, backend, tools, restore: "", table: "mangle" }];
  });
}

function holdsHint(saved: string): boolean {
  return hintChains.some((chain) => saved.includes(`\n:${chain} `));
}

/**
 * The first backend that takes these rulesets, tried in a netns of its own: exactly the matches and targets that pods get.
 * @throws CniError 101 with what each backend said when none does.
 */
export async function tryBackends(
  detecting: Detecting,
  rulesets: readonly Ruleset[],
): Promise<Decision> {
  const refusals: string[] = [];
  for (const backend of backends) {
    const refusal = await refusalOf(detecting, backend, rulesets);
    if (refusal === undefined)
      return { backend, reason: `${backend} works on this node`, provisional: true };
    refusals.push(`${backend}: ${refusal}`);
  }
  throw new CniError(
    errorCode.restoreRejected,
    "neither nft nor legacy iptables works on this node",
    {
      details: refusals.join("; "),
    },
  );
}

async function refusalOf(
  detecting: Detecting,
  backend: Backend,
  rulesets: readonly Ruleset[],
): Promise<string | undefined> {
  try {
    const wanted = rulesets.map(({ family }) => family);
    const choice = await equip(detecting.toolbox, { backend, reason: "trial" }, wanted);
    const { client, remainingMs, sleep } = detecting;
    await converge({ client, place: "scratch", choice, remainingMs, sleep }, rulesets);
    return undefined;
  } catch (error) {
    // A lock, or no time left, says nothing about the backend (istio#58507).
    if (!(error instanceof CniError && error.code === errorCode.restoreRejected)) throw error;
    return error.details === "" ? error.message : `${error.message} (${error.details})`;
  }
}
