// One GET to the API server over TLS, with a time and a size that it may take. Edge.
import { Agent, type RequestOptions, request } from "node:https";
import { isIP } from "node:net";
import { checkServerIdentity, getCACertificates } from "node:tls";
import { parseJson } from "../text/json.ts";
import type { KubeAccess } from "./kubeconfig.ts";
import { sharedLookup } from "./lookup.ts";

/** The largest object that is read; etcd holds none that is larger. */
const largestBytes = 4 * 1024 * 1024;

/** Connections of one command: a second question goes the way of the first. */
export function makeAgent(): Agent {
  return new Agent({ keepAlive: true, maxSockets: 1, lookup: sharedLookup() });
}

/** What came of it. */
export type Answer =
  | { readonly kind: "object"; readonly object: unknown }
  | { readonly kind: "unauthorized" }
  /** May be better the next time. */
  | { readonly kind: "passing"; readonly problem: string }
  /** An answer that stays as it is; `status` is HTTP's. */
  | { readonly kind: "final"; readonly status: number; readonly problem: string }
  /** The server is not the one that the kubeconfig describes, or the kubeconfig's certificates are none. */
  | { readonly kind: "untrusted"; readonly problem: string };

export type Question = {
  readonly access: KubeAccess;
  readonly agent: Agent;
  readonly path: string;
  readonly timeoutMs: number;
};

/** Asks once. Never rejects: what went wrong is in the answer. */
export function ask(question: Question): Promise<Answer> {
  return new Promise((resolve) => {
    const { access, timeoutMs } = question;
    const fail = (error: unknown) => resolve(failure(error, timeoutMs));
    try {
      const sent = request(new URL(access.server), optionsOf(question), (response) => {
        const chunks: Buffer[] = [];
        let size = 0;
        response.on("data", (chunk: Buffer) => {
          chunks.push(chunk);
          size += chunk.length;
          if (size <= largestBytes) return;
          const problem = `an answer of more than ${largestBytes} bytes`;
          resolve({ kind: "final", status: response.statusCode ?? 0, problem });
          response.destroy();
        });
        response.on("error", fail);
        response.on("end", () => {
          const body = Buffer.concat(chunks).toString("utf8");
          resolve(readAnswer(response.statusCode ?? 0, body, access.token));
        });
      });
      sent.on("error", fail);
      sent.end();
    } catch (error) {
      // Certificates that are none are found when the connection is begun.
      fail(error);
    }
  });
}

function optionsOf({ access, agent, path, timeoutMs }: Question): RequestOptions {
  const { ca, clientCertificate, serverName, token } = access;
  return {
    agent,
    path: new URL(access.server).pathname.replace(/\/$/, "") + path,
    // Said, since what Node takes by default is a matter of its options and of the runtime's environment.
    ca: ca ?? getCACertificates("bundled"),
    ...clientCertificate,
    // Said, since the runtime's environment (NODE_TLS_REJECT_UNAUTHORIZED) could say otherwise.
    rejectUnauthorized: true,
    ...(serverName === undefined ? {} : nameOptions(serverName)),
    headers: {
      accept: "application/json",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    // Of the whole try, also of a server that sends a byte now and then.
    signal: AbortSignal.timeout(Math.ceil(timeoutMs)),
  };
}

// An address is no name to ask a server for by SNI, but it may stand in the certificate.
function nameOptions(name: string): RequestOptions {
  return {
    servername: isIP(name) === 0 ? name : "",
    checkServerIdentity: (_, certificate) => checkServerIdentity(name, certificate),
  };
}

const tlsCodes = /CERT|^UNABLE_TO_|^HOSTNAME_MISMATCH$|^ERR_(?:TLS|SSL|OSSL)_/;

function failure(error: unknown, timeoutMs: number): Answer {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (name === "TimeoutError" || name === "AbortError" || code === "ABORT_ERR") {
    return { kind: "passing", problem: `no whole answer in ${Math.ceil(timeoutMs)} ms` };
  }
  if (tlsCodes.test(code)) return { kind: "untrusted", problem: message.slice(0, 300) };
  // Of several addresses that were tried: the message is empty then.
  return { kind: "passing", problem: (message || code).slice(0, 300) };
}

function readAnswer(status: number, body: string, token: string | undefined): Answer {
  if (status === 401) return { kind: "unauthorized" };
  if (status !== 200) {
    const problem = messageOf(token === undefined ? body : body.replaceAll(token, "[redacted]"));
    const passing = status === 429 || status >= 500;
    if (!passing) return { kind: "final", status, problem };
    return { kind: "passing", problem: `HTTP ${status} ${problem}`.trim() };
  }
  try {
    return { kind: "object", object: parseJson(body) };
  } catch (error) {
    // Some proxy's page, with a good status. What is wrong with it is not told in the parser's words: they quote it.
    const isDeep = String(error).includes("the JSON is nested");
    const problem = isDeep ? "an answer that is nested too deep" : "an answer that is not JSON";
    return { kind: "final", status, problem };
  }
}

// The API's own Status object says what is wrong; other bodies do not belong into a message. Whatever is between us and
// the API may repeat there what it was sent: the token is taken out before.
function messageOf(body: string): string {
  const message = /"message"\s*:\s*"((?:[^"\\]|\\.){1,300})/.exec(body)?.[1] ?? "";
  return message.replaceAll("\\", "");
}
