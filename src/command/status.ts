// STATUS: could any pod at all be served here, now? Its no stops the whole node, this plugin's own agent included, so what
// only some pods need is a warning. containerd 2 asks every five seconds: what was found out once is not asked again.

import { CniError, errorCode } from "../cni/error.ts";
import { problemsOf } from "../conf/settings.ts";
import { Fault } from "../fault.ts";
import { redact } from "../log.ts";
import { BatchError } from "../netfilter/iptables/client.ts";
import { chooseFor } from "../node/backend.ts";
import { circumstancesOf } from "../node/circumstances.ts";
import { type Answer, isProven, withAnswer, withProof } from "../node/knowledge.ts";
import { type Tried, tryChosen } from "../node/trial.ts";
import { few } from "../text/telling.ts";
import type { Call, Told } from "./call.ts";

/**
 * Goes over what every ADD needs: nsenter, state directory, a backend that takes our rules of one family at least. What is
 * wrong with conf values, kubeconfig, or one family, is only logged; so is, as debug, what it has said before.
 * @throws CniError 50 with all that is missing.
 */
export async function status(call: Call, told: Told): Promise<string> {
  const valueProblems = valueProblemsOf(call);
  const circumstances = [circumstancesOf(call.settings, call.deps.toolbox), ...valueProblems].join(
    " ",
  );
  const before = call.memory.read().answers?.find((one) => one.circumstances === circumstances);
  const hurdles = await hurdlesOf(call);
  const answer =
    before !== undefined && holds(call, before) && hurdles.length === 0
      ? before
      : await look(call, { circumstances, hurdles, valueProblems, before });
  const isRepeated = before !== undefined && wordsOf(before) === wordsOf(answer);
  if (answer.backend !== undefined) told.backend = answer.backend;
  if (isRepeated) told.repeated = true;
  for (const warning of answer.warnings) call.log[isRepeated ? "debug" : "warn"]({}, warning);
  const [first, ...others] = answer.problems;
  if (first === undefined) return "";
  throw new CniError(errorCode.notAvailable, `sluice cannot work on this node: ${first}`, {
    details: others.join("; "),
  });
}

/** How long an answer with a fault in it is taken as it was: a module may be loaded meanwhile. */
const faultyMs = 60_000;

function holds({ deps }: Call, { problems, warnings, epochMs }: Answer): boolean {
  if (problems.length + warnings.length === 0) return true;
  return Math.abs(deps.clock.epochMs() - epochMs) < faultyMs;
}

function wordsOf({ backend, problems, warnings }: Answer): string {
  return JSON.stringify([backend, problems, warnings]);
}

// Asked anew each time: it costs next to nothing.
async function hurdlesOf(call: Call): Promise<string[]> {
  return [
    ...(await problemOf(() => call.store.prepare())),
    ...(await problemOf(() => requireProgram(call, "nsenter"))),
  ];
}

function requireProgram(call: Call, name: string): void {
  if (call.deps.toolbox.find(name) !== undefined) return;
  throw new Error(`${name} is not on the node; install util-linux`);
}

// What is wrong with values of the conf stops pods that have a proxy, and no others.
function valueProblemsOf({ settings }: Call): string[] {
  const problems = problemsOf(settings);
  return problems.length === 0 ? [] : [`pods that have a proxy cannot be served: ${few(problems)}`];
}

type Looking = {
  readonly circumstances: string;
  readonly hurdles: readonly string[];
  readonly valueProblems: readonly string[];
  readonly before: Answer | undefined;
};

async function look(call: Call, looking: Looking): Promise<Answer> {
  const { circumstances, hurdles, valueProblems, before } = looking;
  const warnings = [...valueProblems, ...(await problemOf(() => readKubeconfig(call)))];
  const problems = [...hurdles];
  let tried: Tried | undefined;
  let isOfTheMoment = false;
  if (problems.length === 0) {
    try {
      tried = await prove(call, before);
    } catch (error) {
      problems.push(inFew(error));
      isOfTheMoment = isShortage(error);
    }
  }
  const answer: Answer = {
    circumstances,
    epochMs: call.deps.clock.epochMs(),
    ...(tried === undefined ? {} : { backend: tried.backend }),
    problems,
    warnings: [...warnings, ...(tried === undefined ? [] : warningsOf(tried))],
  };
  // Where the state directory is the problem, nothing can be kept in it; and a shortage may be over when STATUS comes again.
  if (hurdles.length === 0 && !isOfTheMoment)
    call.memory.keep(withAnswer(call.memory.read(), answer));
  return answer;
}

// As ADD will read it, but not waited for; nothing is sent to the server.
async function readKubeconfig({ settings, deps }: Call): Promise<void> {
  const { kubernetes, source } = settings.pods;
  const kubeconfig = kubernetes?.kubeconfig ?? "";
  const asks = kubeconfig !== "" && source !== "annotations";
  if (asks) await deps.openKube({ kubeconfig, clock: deps.clock, remainingMs: () => 0 });
}

async function prove(call: Call, before: Answer | undefined): Promise<Tried> {
  const wanted = call.settings.families;
  const chosen = await chooseFor(call, { wanted, required: [] });
  const known = call.memory.read();
  const { backend } = chosen.choice;
  // What ADDs have shown holds until STATUS has seen other circumstances than these.
  const isSame = (known.answers ?? []).length === 0 || before?.backend === backend;
  if (isSame && isProven(known, backend, wanted)) return { backend, refusals: new Map() };
  const trial = await tryChosen(call, chosen, wanted);
  const taken = wanted.filter((family) => !trial.refusals.has(family));
  const { proven } = withProof(known, trial.backend, taken);
  call.memory.keep({ ...known, proven });
  return trial;
}

function warningsOf({ refusals }: Tried): string[] {
  return [...refusals].map(
    ([family, said]) => `pods that have ${family} cannot be served: ${said}`,
  );
}

async function problemOf(work: () => void | Promise<void>): Promise<string[]> {
  try {
    await work();
    return [];
  } catch (error) {
    return [inFew(error)];
  }
}

function inFew(error: unknown): string {
  return redact(inWords(error)).slice(0, 2_000);
}

// Nothing could be started. Not so a tool that takes too long: each time, it would take STATUS' whole time again.
function isShortage(error: unknown): boolean {
  return error instanceof BatchError && error.isPassing && error.advice !== "";
}

function inWords(error: unknown): string {
  const isOurs = error instanceof CniError || error instanceof Fault;
  if (isOurs && error.details !== "") {
    return `${error.message} (${error.details})`;
  }
  if (error instanceof BatchError && error.advice !== "") {
    return `${error.message} (${error.advice})`;
  }
  return error instanceof Error ? error.message : String(error);
}
