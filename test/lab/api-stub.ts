// An API server in a box: TLS on loopback with a CA of its own, objects in the real API's shape, and every way in which
// an API server can fail. It counts what it is asked.
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { TLSSocket } from "node:tls";
import { statusObject } from "./api-objects.ts";
import { type Authority, makeAuthority } from "./certificates.ts";

/**
 * How a request is answered: as a good server does; with a status; never; a byte at a time; after a while; with what is no
 * JSON, another object, a pod that is nested without end, headers without end, more than an object can be, or half of one; or
 * with an error that repeats the token.
 */
export type Mode =
  | "ok"
  | "401"
  | "403"
  | "404"
  | "429"
  | "500"
  | "503"
  | "302"
  | "hang"
  | "slow"
  | "late"
  | "garbage"
  | "other"
  | "deep"
  | "headers"
  | "huge"
  | "cut"
  | "echo";

export type ApiStub = {
  readonly url: string;
  readonly authority: Authority;
  /** `GET <path>` of each request, in the order in which they came. */
  readonly requests: string[];
  /** What the coming requests get one by one, before `mode` holds for all. */
  readonly next: Mode[];
  mode: Mode;
  /** The bearer token that is accepted; a certificate of the CA's is as well. */
  token: string;
  /** Objects by path. What is not here is not found. */
  objects: Readonly<Record<string, object>>;
  /** Called when a request has come, before it is answered. */
  onRequest: () => void;
  readonly close: () => Promise<void>;
};

/** Where the stub listens, under which path it serves, and whose certificates it has. */
export type Place = {
  readonly host?: "127.0.0.1" | "::1";
  readonly basePath?: string;
  readonly authority?: Authority;
};

/** Starts the stub on a free port. */
export async function startApi(place: Place = {}): Promise<ApiStub> {
  const { host = "127.0.0.1", basePath = "", authority = makeAuthority() } = place;
  const options = { ...authority.server, ca: authority.ca, requestCert: true };
  const server = createServer({ ...options, rejectUnauthorized: false }, (request, response) => {
    const path = (request.url ?? "").slice(basePath.length);
    stub.requests.push(`${request.method} ${request.url}`);
    stub.onRequest();
    const answer = answers[stub.next.shift() ?? stub.mode];
    answer({ stub, path, request, response });
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  const stub: ApiStub = {
    url: `https://${host === "::1" ? "[::1]" : host}:${port}${basePath}`,
    authority,
    requests: [],
    next: [],
    mode: "ok",
    token: "slc-token.of-the-stub",
    objects: {},
    onRequest: () => undefined,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return stub;
}

type Exchange = {
  readonly stub: ApiStub;
  readonly path: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
};

type Answer = (exchange: Exchange) => void;

/** How long "late" takes. */
export const lateMs = 700;

const answers: Readonly<Record<Mode, Answer>> = {
  ok: (exchange) => {
    if (isKnown(exchange)) sendObject(exchange);
    else sendStatus(exchange, 401);
  },
  "302": ({ response }) => response.writeHead(302, { location: "https://127.0.0.1:1/" }).end(),
  "401": (exchange) => sendStatus(exchange, 401),
  "403": (exchange) => sendStatus(exchange, 403),
  "404": (exchange) => sendStatus(exchange, 404),
  "429": (exchange) => sendStatus(exchange, 429),
  "500": (exchange) => sendStatus(exchange, 500),
  "503": (exchange) => sendStatus(exchange, 503),
  hang: () => undefined,
  slow: ({ stub, path, response }) => {
    const text = JSON.stringify(stub.objects[path] ?? {});
    let sent = 0;
    const timer = setInterval(() => response.write(text[sent++] ?? " "), 100);
    response.on("close", () => clearInterval(timer));
  },
  late: (exchange) => void setTimeout(() => answers.ok(exchange), lateMs),
  garbage: ({ response }) => {
    response.setHeader("content-type", "text/html");
    response.end("<html><title>Sign in</title>");
  },
  other: ({ response }) => send(response, 200, { kind: "ConfigMap", apiVersion: "v1" }),
  deep: ({ response }) => {
    const nest = `${"[".repeat(1_000_000)}${"]".repeat(1_000_000)}`;
    response.end(`{"kind":"Pod","metadata":{"annotations":${nest}},"spec":{}}`);
  },
  headers: ({ response }) => {
    const socket = response.socket;
    socket?.write("HTTP/1.1 200 OK\r\n");
    const more = () => {
      while (socket?.writable === true && socket.write(`x-filler: ${"x".repeat(1_000)}\r\n`));
    };
    socket?.on("drain", more);
    more();
  },
  huge: ({ response }) => {
    const filler = Buffer.alloc(64 * 1024, " ");
    const more = () => {
      while (!response.destroyed && response.write(filler));
    };
    response.on("drain", more);
    more();
  },
  cut: ({ response }) => {
    response.setHeader("content-length", "1000");
    response.write('{"kind":"Pod"', () => response.destroy());
  },
  echo: ({ request, response }) => {
    const message = `no upstream for ${request.headers.authorization}`;
    send(response, 400, { ...statusObject(400, ""), message });
  },
};

function isKnown({ stub, request }: Exchange): boolean {
  const socket = request.socket as TLSSocket;
  return socket.authorized || request.headers.authorization === `Bearer ${stub.token}`;
}

function sendObject(exchange: Exchange): void {
  const object = exchange.stub.objects[exchange.path];
  if (object === undefined) sendStatus(exchange, 404);
  else send(exchange.response, 200, object);
}

function sendStatus({ path, response }: Exchange, code: number): void {
  if (code === 429) response.setHeader("retry-after", "1");
  send(response, code, statusObject(code, path));
}

function send(response: ServerResponse, code: number, document: object): void {
  response.writeHead(code, { "content-type": "application/json" });
  response.end(JSON.stringify(document));
}
