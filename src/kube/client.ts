// Reads objects from the API server: few, bounded in time, tried again where that may help. Edge. Loaded only when the API
// is asked: an ADD that knows the pod's annotations from the runtime pays nothing for it.
import type { Clock } from "../clock.ts";
import { CniError, errorCode } from "../cni/error.ts";
import { fileAgeSeconds, type KubeAccess, KubeconfigError, loadKubeconfig } from "./kubeconfig.ts";
import { type Answer, ask, makeAgent, type Question } from "./transport.ts";
import { UnansweredError } from "./unanswered.ts";

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
  access: KubeAccess,
  path: string,
): CniError {
  const { code, message, details } = told(answer, access);
  const kind = answer.kind === "passing" ? UnansweredError : CniError;
  return new kind(code, `${message}: GET ${access.server}${path}${problemOf(answer)}`, {
    details,
  });
}

type Told = Pick<CniError, "code" | "message" | "details">;

function told(answer: Exclude<Answer, { kind: "object" }>, { tokenFile }: KubeAccess): Told {
  switch (answer.kind) {
    case "unauthorized":
      return {
        code: errorCode.tryAgainLater,
        message: "the API server rejected our token",
        details: `the token is of ${tokenFile}, ${ageOf(tokenFile)}; see that the node agent renews it`,
      };
    case "passing":
      return {
        code: errorCode.tryAgainLater,
        message: "the API server did not answer",
        details:
          "a pod that may be meshed does not start without its redirect; see that the API server can be reached from the node",
      };
    case "untrusted":
      return {
        code: errorCode.podUnreadable,
        message: "no trusted connection to the API server",
        details:
          "see that the kubeconfig's certificate authority, tls-server-name and client certificate fit the API server",
      };
    case "final":
      return {
        code: errorCode.podUnreadable,
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
  if (status === 404) return "the pod is not, or no longer, known to the API server";
  return "see that the kubeconfig's server is a Kubernetes API server";
}
