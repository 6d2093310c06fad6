// Reads objects from the API server: few, bounded in time, tried again where that may help. Edge. Loaded only when the API
// is asked: an ADD that knows the pod's annotations from the runtime pays nothing for it.
import type { Clock } from "../clock.ts";
import { Fault } from "../fault.ts";
import { fileAgeSeconds, type KubeAccess, KubeconfigError, loadKubeconfig } from "./kubeconfig.ts";
import { type Answer, ask, makeAgent, type Question } from "./transport.ts";
import { UnansweredError } from "./unanswered.ts";

/** Gets one object by its path, e.g. `/api/v1/namespaces/default`. @throws Fault try-again or pod-unreadable, saying what to do. */
export type KubeGet = (path: string) => Promise<unknown>;

export type KubeSettings = {
  readonly kubeconfig: string;
  readonly clock: Clock;
  readonly remainingMs: () => number;
};

/** One try may take this long: a server that does not answer by then is asked anew. */
const tryMs = 4_000;

/** What is kept back for the rules once the pod is known. */
const reserveMs = 3_000;

/**
 * Opens the API that a kubeconfig describes; one that is absent or half is waited for. Nothing is sent before the first get.
 * @throws Fault try-again for a kubeconfig that did not come in time, pod-unreadable for one that cannot be used.
 */
export async function openKube(settings: KubeSettings): Promise<KubeGet> {
  let access = await loadPatiently(settings);
  const agent = makeAgent();
  return async (path) => {
    let answer = await askPatiently(settings, { access, agent, path });
    if (answer.kind === "unauthorized") {
      // The node agent may have put a new token there since.
      access = await loadPatiently(settings);
      answer = await askPatiently(settings, { access, agent, path });
    }
    if (answer.kind === "object") return answer.object;
    throw failed(answer, access, path);
  };
}

/** So often an object is asked for that is not there: one that was just made may not be known to each API server yet. */
const absentMax = 4;

async function askPatiently(
  settings: KubeSettings,
  question: Omit<Question, "timeoutMs">,
): Promise<Answer> {
  for (let tries = 1; ; tries++) {
    const answer = await ask({ ...question, timeoutMs: tryTime(settings) });
    const isAbsent = answer.kind === "final" && answer.status === 404 && tries < absentMax;
    if (answer.kind !== "passing" && !isAbsent) return answer;
    if (!(await waited(settings, tries))) return answer;
  }
}

// Longer each time, and random: all pods of a node may be at it. False where no time is left for it.
async function waited({ clock, remainingMs }: KubeSettings, tries: number): Promise<boolean> {
  const waitMs = (0.5 + Math.random() / 2) * 200 * 2 ** Math.min(tries, 4);
  if (remainingMs() < reserveMs + waitMs + 500) return false;
  await clock.sleep(waitMs);
  return true;
}

// A file that is just being written is read again: not every writer puts it there at once, by a rename.
async function loadPatiently(settings: KubeSettings): Promise<KubeAccess> {
  for (let tries = 1; ; tries++) {
    try {
      return loadKubeconfig(settings.kubeconfig);
    } catch (error) {
      if (!(error instanceof KubeconfigError)) throw error;
      const isOver = !error.isPassing || !(await waited(settings, Math.min(tries, 2)));
      if (isOver) throw unusable(error);
    }
  }
}

function unusable({ message, isPassing }: KubeconfigError): Fault {
  const kind = isPassing ? "try-again" : "pod-unreadable";
  return new Fault(kind, message, {
    details: "the pod cannot be read without it; see that the node agent runs and has written it",
  });
}

function tryTime({ remainingMs }: KubeSettings): number {
  return Math.max(500, Math.min(tryMs, remainingMs() - reserveMs));
}

function failed(
  answer: Exclude<Answer, { kind: "object" }>,
  access: KubeAccess,
  path: string,
): Fault {
  const { kind, message, details } = told(answer, access);
  const Failure = answer.kind === "passing" ? UnansweredError : Fault;
  return new Failure(kind, `${message}: GET ${access.server}${path}${problemOf(answer)}`, {
    details,
  });
}

type Told = Pick<Fault, "kind" | "message" | "details">;

function told(answer: Exclude<Answer, { kind: "object" }>, { tokenFile }: KubeAccess): Told {
  switch (answer.kind) {
    case "unauthorized":
      return {
        kind: "try-again",
        message: "the API server rejected our token",
        details: `the token is of ${tokenFile}, ${ageOf(tokenFile)}; see that the node agent renews it`,
      };
    case "passing":
      return {
        kind: "try-again",
        message: "the API server did not answer",
        details:
          "a pod that may be meshed does not start without its redirect; see that the API server can be reached from the node",
      };
    case "untrusted":
      return {
        kind: "pod-unreadable",
        message: "no trusted connection to the API server",
        details:
          "see that the kubeconfig's certificate authority, tls-server-name and client certificate fit the API server",
      };
    case "final":
      return {
        kind: "pod-unreadable",
        message: "the API server gave no pod facts",
        details: adviceFor(answer.status),
      };
  }
}

function problemOf(answer: Exclude<Answer, { kind: "object" }>): string {
  if (answer.kind === "unauthorized") return "";
  if (answer.kind !== "final") return `: ${answer.problem}`;
  return `: HTTP ${answer.status} ${answer.problem}`.trimEnd();
}

function ageOf(file: string): string {
  const seconds = fileAgeSeconds(file);
  return seconds === undefined ? "which is gone" : `${seconds} s old`;
}

function adviceFor(status: number): string {
  if (status === 403)
    return "give the plugin's user the right to get pods, namespaces and services";
  if (status === 404) {
    return "the pod is not, or no longer, known to the API server; it may be no pod of Kubernetes";
  }
  return "see that the kubeconfig's server is a Kubernetes API server";
}
