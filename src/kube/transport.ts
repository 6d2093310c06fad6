// One GET to the API server over TLS, with a time and a size that it may take. Edge.
import { Agent, request } from "node:https";
import type { KubeAccess } from "./kubeconfig.ts";

/** The largest object that is read; etcd holds none that is larger. */
const largestBytes = 4 * 1024 * 1024;

/** Connections of one command: a second question goes the way of the first. */
export function makeAgent(): Agent {
  return new Agent({ keepAlive: true, maxSockets: 1 });
}

/** What came of it. */
export type Answer =
  | { readonly kind: "object"; readonly object: unknown }
  | { readonly kind: "unauthorized" }
  /** May be better the next time. */
  | { readonly kind: "passing"; readonly problem: string }
  | { readonly kind: "final"; readonly status: number; readonly problem: string };

export type Question = {
  readonly access: KubeAccess;
  readonly agent: Agent;
  readonly path: string;
  readonly timeoutMs: number;
};

/** Asks once. Never rejects: what went wrong is in the answer. */
export function ask({ access, agent, path, timeoutMs }: Question): Promise<Answer> {
  return new Promise((resolve) => {
    const passing = (error: Error) => resolve({ kind: "passing", problem: error.message });
    const options = {
      agent,
      ca: access.ca,
      ...access.clientCertificate,
      ...(access.serverName === undefined ? {} : { servername: access.serverName }),
      headers: {
        accept: "application/json",
        ...(access.token === undefined ? {} : { authorization: `Bearer ${access.token}` }),
      },
      // Of the whole try, also of a server that sends a byte now and then.
      signal: AbortSignal.timeout(timeoutMs),
    };
    const sent = request(urlOf(access, path), options, (response) => {
      const chunks: Buffer[] = [];
      let size = 0;
      response.on("data", (chunk: Buffer) => {
        size += chunk.length;
        if (size > largestBytes) response.destroy(new Error("the answer is too large"));
        else chunks.push(chunk);
      });
      response.on("error", passing);
      response.on("end", () => {
        resolve(readAnswer(response.statusCode ?? 0, Buffer.concat(chunks).toString("utf8")));
      });
    });
    sent.on("error", (error) =>
      passing(isTimeout(error) ? new Error(`no answer in ${timeoutMs} ms`) : error),
    );
    sent.end();
  });
}

function urlOf(access: KubeAccess, path: string): URL {
  return new URL(path, access.server);
}

function isTimeout(error: Error): boolean {
  return error.name === "TimeoutError" || error.name === "AbortError";
}

function readAnswer(status: number, body: string): Answer {
  if (status === 401) return { kind: "unauthorized" };
  if (status === 429 || status >= 500) {
    return { kind: "passing", problem: `HTTP ${status} ${messageOf(body)}`.trim() };
  }
  if (status !== 200) return { kind: "final", status, problem: messageOf(body) };
  try {
    return { kind: "object", object: JSON.parse(body) };
  } catch {
    // Some proxy's page, with a good status.
    return { kind: "final", status, problem: "the answer is not JSON" };
  }
}

// The API's own Status object says what is wrong; other bodies do not belong into a message.
function messageOf(body: string): string {
  const message = /"message"\s*:\s*"((?:[^"\\]|\\.){1,300})/.exec(body)?.[1] ?? "";
  return message.replaceAll("\\", "");
}
