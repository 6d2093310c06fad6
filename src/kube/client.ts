// Reads objects from the API server: few, bounded in time, tried again where that may help. Edge. Loaded only when the API
// is asked: an ADD that knows the pod's annotations from the runtime pays nothing for it.
import type { Clock } from "../clock.ts";
import { CniError, errorCode } from "../cni/error.ts";
import { fileAgeSeconds, type KubeAccess, KubeconfigError, loadKubeconfig } from "./kubeconfig.ts";
import { type Answer, ask, makeAgent, type Question } from "./transport.ts";

/** Gets one object by its path, e.g. `/api/v1/namespaces/default`. @throws CniError 11 or 103, saying what to do. */
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

/** Opens the API that a kubeconfig describes. Nothing is sent before the first get. */
export function openKube(settings: KubeSettings): KubeGet {
  let access = load(settings.kubeconfig);
  const agent = makeAgent();
  return async (path) => {
    let answer = await askPatiently(settings, { access, agent, path });
    if (answer.kind === "unauthorized") {
      // The node agent may have put a new token there since.
      access = load(settings.kubeconfig);
      answer = await askPatiently(settings, { access, agent, path });
    }
    if (answer.kind === "object") return answer.object;
    throw failed(answer, access, path);
  };
}

async function askPatiently(
  settings: KubeSettings,
  question: Omit<Question, "timeoutMs">,
): Promise<Answer> {
  for (let tries = 1; ; tries++) {
    const answer = await ask({ ...question, timeoutMs: tryTime(settings) });
    const waitMs = Math.random() * 200 * 2 ** Math.min(tries, 4);
    const late = settings.remainingMs() < reserveMs + waitMs + 500;
    if (answer.kind !== "passing" || late) return answer;
    await settings.clock.sleep(waitMs);
  }
}

function load(kubeconfig: string): KubeAccess {
  try {
    return loadKubeconfig(kubeconfig);
  } catch (error) {
    if (!(error instanceof KubeconfigError)) throw error;
    throw new CniError(errorCode.podUnreadable, error.message, {
      details: "the pod cannot be read without it; see that the node agent runs and has written it",
      cause: error.cause,
    });
  }
}

function tryTime({ remainingMs }: KubeSettings): number {
  return Math.max(500, Math.min(tryMs, remainingMs() - reserveMs));
}

function failed(
  answer: Exclude<Answer, { kind: "object" }>,
  { server, tokenFile }: KubeAccess,
  path: string,
): CniError {
  const asked = `GET ${server}${path}`;
  switch (answer.kind) {
    case "unauthorized":
      return new CniError(errorCode.tryAgainLater, `the API server rejected our token: ${asked}`, {
        details: `the token is of ${tokenFile}, ${ageOf(tokenFile)}; see that the node agent renews it`,
      });
    case "passing":
      return new CniError(
        errorCode.tryAgainLater,
        `the API server did not answer: ${asked}: ${answer.problem}`,
        { details: "a pod that may be meshed does not start without its redirect" },
      );
    case "final":
      return new CniError(
        errorCode.podUnreadable,
        `the API server refused: ${asked}: HTTP ${answer.status} ${answer.problem}`.trimEnd(),
        { details: adviceFor(answer.status) },
      );
  }
}

function ageOf(file: string): string {
  const seconds = fileAgeSeconds(file);
  return seconds === undefined ? "which is gone" : `${seconds} s old`;
}

function adviceFor(status: number): string {
  if (status === 403)
    return "give the plugin's user the right to get pods, namespaces and services";
  if (status === 404) return "the pod is not, or no longer, known to the API";
  return "see that the kubeconfig's server is a Kubernetes API server";
}
