// A server that nobody may ask: it counts connections. And a kubeconfig that leads to it.
import { once } from "node:events";
import { createServer } from "node:net";

export type ApiListener = {
  readonly port: number;
  readonly connections: () => number;
  readonly close: () => void;
};

export async function listenAsApi(): Promise<ApiListener> {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.destroy();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return { port, connections: () => connections, close: () => server.close() };
}

/** A kubeconfig's text, for a server on loopback. */
export function kubeconfig(port: number, token = "slc-token"): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server: `https://127.0.0.1:${port}` } }],
    users: [{ name: "u", user: { token } }],
    contexts: [{ name: "here", context: { cluster: "c", user: "u" } }],
    "current-context": "here",
  });
}
