// The demo: what Sluice does for a pod, with cnitool as the runtime, bridge before it and HAProxy as the mesh's proxy.
// The scenes stand in the order in which they play; every claim is held against what was observed.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gateway, type Pod } from "../lab/host.ts";
import { root } from "../lab/plugin.ts";
import { changeNat, loadNat, savedNat } from "../lab/pod-nat.ts";
import { uidOf } from "./daemon.ts";
import type { Narrator } from "./narrator.ts";
import type { Route } from "./route.ts";
import { perform } from "./run.ts";
import { proxyUid, type Sidecar } from "./sidecar.ts";
import { appPorts, appUid, clientIp, type Stage, serverIp } from "./stage.ts";

const both = ["outbound", "inbound"];

process.exitCode = await perform([
  ["Two pods are added: bridge gives the address, sluice the redirect", addPods],
  ["Each pod gets its proxy, and the server its app", startPrograms],
  ["One request, hop by hop", followOneRequest],
  ["What is excluded goes past the proxies", passByTheProxies],
  ["Someone deletes a rule: check names it, ADD heals it", deleteOneRule],
  ["The seed of this project: the rules of an init container that was interrupted", replaySeed],
  ["The pods are deleted, and nothing of sluice is left in them", deletePods],
]);

async function addPods({ host, client, server }: Stage, { did, claim }: Narrator): Promise<void> {
  const add = async (pod: Pod, ip: string) => {
    did(`$ cnitool add ${host.network} ${pod.path}`);
    const { exitCode, stdout, stderr } = await host.cnitool("add", pod);
    claim(`exit 0, address ${ip}`, exitCode === 0 && stdout.includes(`"${ip}/24"`), stderr);
    const unchanged = stdout.trim() === host.bridgeOutput().trim();
    claim("cnitool's result is what bridge printed, to the letter", unchanged, stdout);
  };
  await add(client, clientIp);
  await add(server, serverIp);
  const rules = rulesIn(client);
  const equal = rules.length > 0 && same(rules, rulesIn(server));
  const none = ours(host.netns).length === 0;
  claim(`both have the same ${rules.length} rules, and the node has none`, equal && none, rules);
}

async function startPrograms(stage: Stage, { claim }: Narrator): Promise<void> {
  const { clientProxy, serverProxy, app } = await stage.startPrograms();
  const proxy = (pod: string, { daemon }: Sidecar) => {
    const uid = uidOf(daemon.pid);
    claim(`${pod}: HAProxy on 4140 and 4143 as uid ${proxyUid}`, uid === proxyUid, uid);
  };
  proxy("client", clientProxy);
  proxy("server", serverProxy);
  const [uid, ports] = [uidOf(app.pid), Object.values(appPorts).join(", ")];
  claim(`server: the app on ${ports} as uid ${appUid}; the client's is curl`, uid === appUid, uid);
}

async function followOneRequest(stage: Stage, narrator: Narrator): Promise<void> {
  narrator.did(`client, uid ${appUid} $ curl http://${serverIp}:${appPorts.web}/`);
  const route = await stage.fromClient(`${serverIp}:${appPorts.web}`);
  narrator.saw(
    `client app      ${route.client} asks ${route.target}`,
    ...route.hops.map(
      ({ frontend, from, to, onward }) =>
        `${frontend.padEnd(8)} proxy  takes ${from} to ${to} and goes on from ${onward}`,
    ),
    `server app      sees ${route.peer}`,
  );
  const told = leads(route, both);
  narrator.claim("through both proxies, and both knew the original address", told, way(route));
  const once = route.hops.length === 2 && route.strays.length === 0;
  narrator.claim("one line in each log: the proxies' own traffic does not loop", once, route);
}

async function passByTheProxies(stage: Stage, narrator: Narrator): Promise<void> {
  const { database, admin, web } = appPorts;
  const direct = await ask(stage, narrator, database);
  const alone = leads(direct, []) && direct.peer === direct.client;
  narrator.claim(`port ${database} is excluded outbound and inbound`, alone, way(direct));
  const half = await ask(stage, narrator, admin);
  const out = leads(half, ["outbound"]) && half.peer === half.hops[0]?.onward;
  narrator.claim(`port ${admin} is excluded inbound only`, out, way(half));
  narrator.did(`node $ curl http://${serverIp}:${web}/`);
  const probe = await stage.fromNode(`${serverIp}:${web}`);
  narrator.saw(way(probe));
  const known = leads(probe, []) && probe.peer.startsWith(`${gateway}:`);
  const claim = `subnet ${gateway}/32 is excluded: so the kubelet's probes come in`;
  narrator.claim(claim, known, way(probe));
}

async function deleteOneRule(stage: Stage, narrator: Narrator): Promise<void> {
  const { host, client } = stage;
  await expectSound(stage, narrator);
  const rule = rulesIn(client).find((line) => line.endsWith("--to-ports 4140")) ?? "";
  const deletion = rule.replace("-A", "-D");
  narrator.did(`someone in client's nat table: ${deletion}`);
  changeNat(client, host.backendOf(client), [deletion]);
  await expectBypass(stage, narrator);
  await expectDrift(stage, narrator, `missing-rule (ipv4 nat PROXY_INIT_OUTPUT): expected ${rule}`);
  await heal(stage, narrator);
}

async function replaySeed(stage: Stage, narrator: Narrator): Promise<void> {
  const { host, client } = stage;
  const seed = "test/fixture/linkerd-init-interrupted.save";
  narrator.did(`client # iptables-restore ${seed}`);
  loadNat(client, host.backendOf(client), readFileSync(join(root, seed), "utf8"));
  const rules = rulesIn(client);
  const isIn = (chain: string) => rules.some((rule) => rule.startsWith(`-A ${chain} `));
  const open = isIn("PROXY_INIT_OUTPUT") && !isIn("OUTPUT");
  narrator.claim("the chain is there and filled, but OUTPUT does not lead into it", open, rules);
  await expectBypass(stage, narrator);
  await expectDrift(stage, narrator, "missing-jump (ipv4 nat OUTPUT): expected -A OUTPUT ");
  await heal(stage, narrator);
}

async function deletePods(
  { host, client, server }: Stage,
  { did, claim }: Narrator,
): Promise<void> {
  for (const pod of [client, server]) {
    did(`$ cnitool del ${host.network} ${pod.path}   (twice)`);
    const first = await host.cnitool("del", pod);
    const left = ours(pod);
    const gone = first.exitCode === 0 && left.length === 0;
    const seen = [first.stderr, ...left];
    claim("exit 0, and the netns, which lives on, has no rule or chain of ours", gone, seen);
    const second = await host.cnitool("del", pod);
    claim("the second time: exit 0", second.exitCode === 0, second);
  }
  const left = [...host.records(), ...host.leases()];
  claim("no record in the state directory, no address reserved", left.length === 0, left);
}

async function ask(stage: Stage, { did, saw }: Narrator, port: number): Promise<Route> {
  did(`client $ curl http://${serverIp}:${port}/`);
  const route = await stage.fromClient(`${serverIp}:${port}`);
  saw(way(route));
  return route;
}

async function expectBypass(stage: Stage, narrator: Narrator): Promise<void> {
  const route = await ask(stage, narrator, appPorts.web);
  const past = leads(route, ["inbound"]) && route.hops[0]?.from === route.client;
  narrator.claim("the client's proxy is passed by, and nobody notices", past, way(route));
}

async function expectSound({ host, client }: Stage, { claim }: Narrator): Promise<void> {
  const { exitCode, stderr } = await host.cnitool("check", client);
  claim("cnitool check: exit 0", exitCode === 0, stderr);
}

async function expectDrift(stage: Stage, narrator: Narrator, drift: string): Promise<void> {
  const { host, client } = stage;
  narrator.did(`$ cnitool check ${host.network} ${client.path}`);
  const { exitCode, stderr } = await host.cnitool("check", client);
  narrator.saw(stderr);
  const named = exitCode === 1 && stderr.includes(drift);
  narrator.claim("exit 1, and it says what is missing", named, { exitCode, drift });
}

// By cnitool the whole list would run, and bridge refuses a pod that has its eth0.
async function heal(stage: Stage, narrator: Narrator): Promise<void> {
  const { host, client } = stage;
  narrator.did(
    "ADD of sluice alone, with prevResult, as an agent does (cnitool would run bridge too, and fail)",
  );
  const { exitCode, stdout } = await host.plugin("add", client);
  const good = exitCode === 0 && stdout.includes(`"${clientIp}/24"`);
  narrator.claim("exit 0, and the result is passed on", good, stdout);
  await expectSound(stage, narrator);
  const route = await ask(stage, narrator, appPorts.web);
  narrator.claim("through both proxies again", leads(route, both), way(route));
}

/** True when the request went through these proxies and no other, and each was told the address that was asked. */
function leads({ hops, target, strays }: Route, frontends: readonly string[]): boolean {
  const met = hops.map(({ frontend }) => frontend);
  return same(met, frontends) && hops.every(({ to }) => to === target) && strays.length === 0;
}

function way({ client, hops, peer, strays }: Route): string {
  const proxies = hops.map(({ frontend }) => `${frontend} proxy`);
  const astray = strays.length === 0 ? "" : `; and ${strays.length} connections more`;
  return [client, ...proxies, `app, which sees ${peer}${astray}`].join(" -> ");
}

/** The lines of a netns' nat table that have to do with own chains: their declarations, rules, and jumps. */
function ours(pod: Pod): string[] {
  return savedNat(pod)
    .split("\n")
    .filter((line) => line.includes("PROXY_INIT_"));
}

function rulesIn(pod: Pod): string[] {
  return ours(pod).filter((line) => line.startsWith("-A"));
}

function same(some: readonly string[], others: readonly string[]): boolean {
  return some.join("\n") === others.join("\n");
}
