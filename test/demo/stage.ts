// What the scenes play on: a node in a box, two pods, their proxies and the app. Knows how to leave the machine as it was.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { bridgeName, gateway, type Host, makeHost, type Pod } from "../lab/host.ts";
import { node } from "../lab/plugin.ts";
import { type Daemon, startDaemon } from "./daemon.ts";
import { type Route, request } from "./route.ts";
import { proxyPorts, type Sidecar, startSidecar } from "./sidecar.ts";

/** host-local gives them out in this order. */
export const clientIp = "10.213.7.2";
export const serverIp = "10.213.7.3";
export const appUid = 1000;
/** Where the app listens: a redirected port, one that is excluded inbound, one that is excluded both ways. */
export const appPorts = { web: 8080, admin: 4190, database: 4567 };

export type Stage = {
  readonly host: Host;
  readonly client: Pod;
  readonly server: Pod;
  /** Starts the proxies of both pods and the server's app; all listen when it is over. */
  readonly startPrograms: () => Promise<Programs>;
  readonly fromClient: (target: string) => Promise<Route>;
  readonly fromNode: (target: string) => Promise<Route>;
  /** Ends what was started, by process id. */
  readonly stopPrograms: () => Promise<void>;
  /** Removes everything at once; harmless when it is gone already. */
  readonly remove: () => void;
};

export type Programs = {
  readonly clientProxy: Sidecar;
  readonly serverProxy: Sidecar;
  readonly app: Daemon;
};

/** Makes the node and the netns of both pods; nothing runs in them yet. */
export function setStage(): Stage {
  const host = makeHost({ purpose: "demo", cniVersion: "1.1.0", linkerd: exclusions });
  const daemons: Daemon[] = [];
  const sidecars: Sidecar[] = [];
  const remove = () => {
    for (const { kill } of daemons) kill();
    host.remove();
  };
  const startProxy = (pod: Pod) => {
    const sidecar = startSidecar(pod, host.dir);
    daemons.push(sidecar.daemon);
    sidecars.push(sidecar);
    return sidecar;
  };
  const startPrograms = async (client: Pod, server: Pod) => {
    const programs = {
      clientProxy: startProxy(client),
      serverProxy: startProxy(server),
      app: startApp(server),
    };
    daemons.push(programs.app);
    await Promise.all([
      programs.app.listening(Object.values(appPorts)),
      ...sidecars.map(({ daemon }) => daemon.listening(proxyPorts)),
    ]);
    return programs;
  };
  try {
    const [client, server] = [host.addPod("client"), host.addPod("server")];
    return {
      host,
      client,
      server,
      startPrograms: () => startPrograms(client, server),
      fromClient: (target) => request({ pod: client, uid: appUid }, target, sidecars),
      fromNode: (target) => request({ pod: host.netns, uid: 0 }, target, sidecars),
      stopPrograms: async () => {
        await Promise.all(daemons.map(({ stop }) => stop()));
      },
      remove,
    };
  } catch (error) {
    remove();
    throw error;
  }
}

/** What there still is of the demo on the machine. */
export function leftovers(host: Host): string[] {
  const names = [
    ...namesIn("/run/netns").map((name) => ({ name, at: "netns" })),
    ...namesIn("/sys/class/net").map((name) => ({ name, at: "link" })),
    ...namesIn("/var/lib/cni/results").map((name) => ({ name, at: "result in /var/lib/cni" })),
    ...namesIn("/var/lib/cni/networks").map((name) => ({ name, at: "leases in /var/lib/cni" })),
  ];
  const ours = [host.netns.name.replace(/host$/, ""), `${host.network}-cnitool-`, bridgeName];
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").trim();
  return [
    ...names
      .filter(({ name }) => ours.some((own) => name.startsWith(own)) || name === host.network)
      .map(({ name, at }) => `${at} ${name}`),
    ...(children === "" ? [] : [`process ${children}`]),
    ...(existsSync(host.dir) ? [host.dir] : []),
  ];
}

// The ports are those that the pod of scene 6 had excluded. The node's own address: kubelet's probes come from there.
const exclusions = {
  "inbound-ports-to-ignore": ["4190-4191", "4567-4568"],
  "outbound-ports-to-ignore": ["4567-4568"],
  "subnets-to-ignore": [`${gateway}/32`],
};

function startApp(pod: Pod): Daemon {
  const [program, listen] = [join(import.meta.dirname, "app.ts"), Object.values(appPorts)];
  return startDaemon(pod, [node, program, String(appUid), ...listen.map(String)]);
}

function namesIn(dir: string): string[] {
  return existsSync(dir) ? readdirSync(dir) : [];
}
