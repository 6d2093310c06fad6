// What the scenes play on: a node in a box, two pods, their proxies and the app. Knows how to leave the machine as it was.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { bridgeName, gateway, type Host, makeHost, type Pod } from "../lab/host.ts";
import { node } from "../lab/plugin.ts";
import { type Daemon, startDaemon } from "./daemon.ts";
import { type Client, type Route, request } from "./route.ts";
import { type Sidecar, startSidecar } from "./sidecar.ts";

export const appUid = 1000;
/** Where the app listens: a port that is redirected, one that is excluded inbound, one excluded in both directions. */
export const ports = { redirected: 8080, admin: 4190, database: 4567 };
export const version = "1.1.0";

export type Stage = {
  readonly host: Host;
  readonly client: Pod;
  readonly server: Pod;
  /** Starts both pods' proxies, and the server's app. */
  readonly startPrograms: () => Promise<Programs>;
  readonly fromClient: (target: string) => Promise<Route>;
  readonly fromNode: (target: string) => Promise<Route>;
  /** Ends what was started, by process id. */
  readonly stopPrograms: () => Promise<void>;
  /** Removes everything at once; harmless when it is gone already. */
  readonly remove: () => void;
  /** What is there of the demo, and what it might have changed: the same before and after. */
  readonly traces: () => readonly string[];
};

export type Programs = { readonly proxies: readonly Sidecar[]; readonly app: Daemon };

/** Makes the netns; nothing runs in them yet. The exclusions are those of the pod of scene 6, and the node's address. */
export function setStage(): Stage {
  const host = makeHost({
    purpose: "demo",
    cniVersion: version,
    linkerd: {
      "inbound-ports-to-ignore": ["4190-4191", "4567-4568"],
      "outbound-ports-to-ignore": ["4567-4568"],
      "subnets-to-ignore": [`${gateway}/32`],
    },
  });
  const daemons: Daemon[] = [];
  const sidecars: Sidecar[] = [];
  const remove = () => {
    for (const { kill } of daemons) kill();
    host.remove();
  };
  const requestAs = (client: Client) => (target: string) => request(client, target, sidecars);
  try {
    const [client, server] = [host.addPod("client"), host.addPod("server")];
    const startApp = async () => {
      const argv = [node, join(import.meta.dirname, "app.ts"), String(appUid)];
      const listen = Object.values(ports);
      const app = await startDaemon(server, [...argv, ...listen.map(String)], listen);
      daemons.push(app);
      return app;
    };
    const startProxy = async (pod: Pod) => {
      const sidecar = await startSidecar(pod, host.dir);
      daemons.push(sidecar.daemon);
      sidecars.push(sidecar);
    };
    return {
      host,
      client,
      server,
      startPrograms: async () => {
        const [app] = await Promise.all([startApp(), startProxy(client), startProxy(server)]);
        return { app, proxies: sidecars };
      },
      fromClient: requestAs({ pod: client, uid: appUid }),
      fromNode: requestAs({ pod: host.netns, uid: 0 }),
      stopPrograms: async () => {
        await Promise.all(daemons.map(({ stop }) => stop()));
      },
      remove,
      traces: () => traces(host, daemons),
    };
  } catch (error) {
    remove();
    throw error;
  }
}
