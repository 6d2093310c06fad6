// Decides through which backend rules are written where nobody said so. Edge: runs the tools, and leaves no trace of it:
// looking at hints makes no table (see client.ts), and the trial has a netns of its own.
import { Fault } from "../fault.ts";
import { converge } from "../netfilter/converge/converge.ts";
import type { Client } from "../netfilter/iptables/client.ts";
import { readFailure } from "../netfilter/iptables/failure.ts";
import type { Job, Outcome } from "../netfilter/iptables/job.ts";
import type { BackendChoice } from "../netfilter/iptables/tools.ts";
import { type Backend, backends, type Family, families, type Ruleset } from "../netfilter/table.ts";
import { equip } from "./choice.ts";
import type { Decision } from "./knowledge.ts";
import type { Programs } from "./programs.ts";

/** What a detection looks with. */
export type Detecting = {
  readonly client: Client;
  readonly programs: Programs;
  readonly remainingMs: () => number;
  readonly sleep: (ms: number) => Promise<void>;
};

/** Chains that kubelets make in mangle for this very question (KEP-3178), and that older ones make to watch for flushes. */
const hintChains = ["KUBE-IPTABLES-HINT", "KUBE-KUBELET-CANARY"];

/** What a look at the hints came to: a decision where there are any; and why not all of them could be seen. */
export type Hint = { readonly decision: Decision | undefined; readonly unseen: readonly string[] };

/**
 * The backend that the node's kubelet uses, by its hint chains in the node's own netns; no decision where there are none,
 * which is normal. nft is looked at first: both have them after a node changed over, and then the new one counts. A look
 * that fails is no answer: a backend that is behind one may be the node's all the same.
 */
export async function findHint(detecting: Detecting): Promise<Hint> {
  const looks = (
    await Promise.all(backends.flatMap((backend) => hintLooks(detecting, backend)))
  ).flat();
  const jobs = looks.filter((look) => typeof look !== "string");
  const outcomes =
    jobs.length === 0 ? [] : await detecting.client("host", jobs, detecting.remainingMs());
  const unseen = [
    ...looks.filter((look) => typeof look === "string"),
    ...outcomes.flatMap(unseenIn),
  ];
  const hinted = outcomes.filter(({ saveStatus, saved }) => saveStatus === 0 && holdsHint(saved));
  const found = [...new Set(hinted.map(({ job }) => job.backend))];
  return { decision: decisionOf(found, unseen), unseen };
}

function decisionOf(found: readonly Backend[], unseen: readonly string[]): Decision | undefined {
  const [backend] = found;
  if (backend === undefined) return undefined;
  const both = found.length > 1 ? " (and legacy has them too: left from before?)" : "";
  return {
    backend,
    reason: `the kubelet's hint chains are in ${backend}${both}`,
    provisional: false,
    ...(found.length > 1 ? { doubtful: true } : {}),
    // What was not seen of legacy does not matter where nft has them.
    ...(unseen.length > 0 && backend !== backends[0] ? { incomplete: true } : {}),
  };
}

// A kernel without the backend, or without the table, has no hint there. Any other failure is no answer.
function unseenIn({ job, saveStatus, stderr }: Outcome): string[] {
  const { kind, said } = readFailure(saveStatus, stderr);
  const isForbidden = /permission denied|operation not permitted/i.test(stderr);
  if (saveStatus === 0 || (kind === "unsupported" && !isForbidden)) return [];
  return [`${job.tools.save} (${job.backend}, ${job.family}): ${said}`];
}

function hintLooks({ programs }: Detecting, backend: Backend): Promise<(Job | string)[]>[] {
  return families.map(async (family): Promise<(Job | string)[]> => {
    const tools = await programs.find(backend, family);
    if (tools !== undefined) {
      return [{ family, backend, tools, restore: "", table: "mangle" }];
    }
    const plain = await programs.findPlain(family);
    const isUnknown = plain !== undefined && plain.backend === undefined;
    return isUnknown ? [`${plain.tools.restore} gave no answer to --version`] : [];
  });
}

function holdsHint(saved: string): boolean {
  return hintChains.some((chain) => saved.includes(`\n:${chain} `));
}

/** What is tried, and which families must be taken (the first that takes them is the one, if none takes all). */
export type Needed = {
  readonly rulesets: readonly Ruleset[];
  readonly required: readonly Family[];
};

/** A backend that was tried: the families that it takes, and what it said of the others. */
export type Trial = {
  readonly backend: Backend;
  readonly families: readonly Family[];
  readonly refusals: ReadonlyMap<Family, string>;
};

/**
 * The backend that takes most of these rulesets, tried in a netns of its own: exactly the matches and targets that pods get.
 * The first that takes all of them, else the first that takes IPv4's, else any.
 * @throws Fault rejected with what each backend said when none takes any, or those that are required.
 */
export async function tryBackends(detecting: Detecting, needed: Needed): Promise<Trial> {
  const trials: Trial[] = [];
  const refusals: string[] = [];
  for (const backend of backends) {
    const trial = await tryBackend(detecting, backend, needed);
    if (typeof trial === "string") refusals.push(`${backend}: ${trial}`);
    else if (trial.refusals.size === 0) return trial;
    else trials.push(trial);
  }
  const best = trials.find(({ families: taken }) => taken.includes("ipv4")) ?? trials[0];
  if (best !== undefined) return best;
  throw new Fault("rejected", "neither nft nor legacy iptables works on this node", {
    details: refusals.join("; "),
  });
}

/** What a trial decides: until a hint shows. */
export function decisionOfTrial({ backend }: Trial, unseen: readonly string[]): Decision {
  return {
    backend,
    reason: `${backend} works on this node`,
    provisional: true,
    ...(unseen.length > 0 ? { incomplete: true } : {}),
  };
}

async function tryBackend(
  detecting: Detecting,
  backend: Backend,
  needed: Needed,
): Promise<Trial | string> {
  try {
    const wanted = needed.rulesets.map(({ family }) => family);
    const decided = { backend, reason: "trial", required: needed.required };
    const choice = await equip(detecting.programs, decided, wanted);
    return await tryChoice(detecting, choice, needed);
  } catch (error) {
    // A lock, or no time left, says nothing about the backend (istio#58507).
    if (!(error instanceof Fault && error.kind === "rejected")) throw error;
    return inWords(error);
  }
}

/** Tries one choice. @throws Fault as converge, when it takes none of the rulesets, or not those that are required. */
export async function tryChoice(
  { client, remainingMs, sleep }: Detecting,
  choice: BackendChoice,
  { rulesets, required }: Needed,
): Promise<Trial> {
  const session = { client, place: "scratch", choice, remainingMs, sleep, required } as const;
  const { left } = await converge(session, rulesets);
  const refusals = new Map(left.map(({ family, error }) => [family, inWords(error)] as const));
  const taken = rulesets.map(({ family }) => family).filter((family) => !refusals.has(family));
  return { backend: choice.backend, families: taken, refusals };
}

function inWords(error: Fault | undefined): string {
  const { message, details } = error ?? { message: "", details: "" };
  return details === "" ? message : `${message} (${details})`;
}
