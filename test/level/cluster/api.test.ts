// Pods whose facts are the API server's, asked for with the rights that README lists and no others: by its answers, with a
// token that is renewed, and while the server is away.
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { load } from "js-yaml";
import { expect } from "vitest";
import * as z from "zod";
import { blocksIn, section } from "../../docs/readme.ts";
import { meshed, redirected } from "../runtime/cri/chain.ts";
import { kept, logged, rulesIn } from "../runtime/cri/traces.ts";
import { until } from "../runtime/cri/until.ts";
import { type Cluster, kubectl, setChain } from "./lab/cluster.ts";
import { page } from "./lab/images.ts";
import { chain, ipv4Network, test } from "./lab/level.ts";
import { type PodOptions, podManifest, webPort } from "./lab/manifest.ts";
import { apiServerUrl } from "./lab/pki.ts";
import { apply, applyPod, eventsOf, waitForPods } from "./lab/pods.ts";
import { makeServiceAccount } from "./lab/service-account.ts";

/** The sidecar without its mark: only the API tells that the pod is meshed. */
const unmarked: PodOptions = { sidecar: true, annotations: { "linkerd.io/proxy-version": "" } };

test("ADD redirects a pod when the API shows its proxy and no annotation does", async ({
  cluster,
}) => {
  await askApi(cluster, await readmeAccount(cluster));
  const { netns } = await applyPod(cluster, "api-meshed", unmarked);

  expect(rulesIn(cluster.box, netns)).toEqual(redirected);
});

test("ADD leaves a pod alone when the API shows no proxy, whatever its annotations say", async ({
  cluster,
}) => {
  await askApi(cluster, await readmeAccount(cluster));
  const { netns } = await applyPod(cluster, "api-plain", { annotations: meshed });

  expect(rulesIn(cluster.box, netns)).toEqual([]);
  expect(lastAdd(cluster, "api-plain")).toMatchObject({ skipped: "no container linkerd-proxy" });
});

test("ADD goes by the namespace's annotations when the API gives them and the pod has none", async ({
  cluster,
}) => {
  await askApi(cluster, await readmeAccount(cluster));
  const annotation = "config.linkerd.io/skip-inbound-ports";
  await kubectl(cluster, ["annotate", "namespace", "default", `${annotation}=25,5432-5435`]);
  try {
    const { netns } = await applyPod(cluster, "api-namespace", unmarked);

    const ports = (line: string) => line.replace("4190,4191", "25,4190,4191,5432:5435");
    expect(rulesIn(cluster.box, netns)).toEqual(redirected.map(ports));
  } finally {
    await kubectl(cluster, ["annotate", "namespace", "default", `${annotation}-`]);
  }
});

test("ADD lets a pod out to the API server's ports when it is of the control plane", async ({
  cluster,
}) => {
  const labels = { "linkerd.io/control-plane-component": "destination" };
  await askApi(cluster, await readmeAccount(cluster), { "api-server-ports": [] });
  const { netns } = await applyPod(cluster, "api-control-plane", { ...unmarked, labels });

  const past = `-A PROXY_INIT_OUTPUT -p tcp -m multiport --dports 443,6443 -m comment --comment "sluice/exclude-port" -j RETURN`;
  const before = redirected.findIndex((line) => line.includes("sluice/redirect-outbound"));
  expect(rulesIn(cluster.box, netns)).toEqual(redirected.toSpliced(before, 0, past));
});

test("a pod's events name the right that is missing when the API refuses to show the pod", async ({
  cluster,
}) => {
  await askApi(cluster, await makeServiceAccount(cluster, "powerless", []));
  await apply(cluster, [podManifest("api-refused", unmarked)]);

  const user = "system:serviceaccount:default:powerless";
  const refused = `pods "api-refused" is forbidden: User "${user}" cannot get resource "pods" in API group "" in the namespace "default"`;
  expect(await failureOf(cluster, "api-refused")).toContain(
    `plugin type="sluice" failed (add): the API server gave no pod facts: GET ${podUrl("api-refused")}: HTTP 403 ${refused}; give the plugin's user the right to get pods, namespaces and services`,
  );
  expect(await cluster.crictl.find("api-refused")).toBe("");
});

test("a pod whose ADD failed by a revoked token starts by itself when the token is renewed", async ({
  cluster,
}) => {
  const tokenFile = join(cluster.box.dir, "sluice.token");
  const kubeconfig = withTokenFile(await readmeAccount(cluster), tokenFile);
  writeFileSync(tokenFile, await revokedToken(cluster), { mode: 0o600 });
  await askApi(cluster, kubeconfig);
  await apply(cluster, [podManifest("api-rotated", { sidecar: true })]);

  expect(await failureOf(cluster, "api-rotated")).toMatch(
    new RegExp(
      `plugin type="sluice" failed \\(add\\): the API server rejected our token: GET ${podUrl("api-rotated")}; the token is of ${tokenFile}, \\d+ s old; see that the node agent renews it$`,
    ),
  );
  expect(lastAdd(cluster, "api-rotated")).toMatchObject({ level: "error", code: 11 });

  writeFileSync(tokenFile, await kubectl(cluster, ["create", "token", "sluice"]));

  await waitForPods(cluster, ["api-rotated"]);
  const { netns } = await sandboxOf(cluster, "api-rotated");
  expect(rulesIn(cluster.box, netns)).toEqual(redirected);
});

test("only pods that may be meshed wait for the API server when sandboxes are made while it is away", async ({
  cluster,
}) => {
  const waiting = "api-away-meshed";
  const others = ["api-away-plain", "api-away-excluded"];
  const options = { "timeout-seconds": 8, "exclude-namespaces": ["kube-system"] };
  await askApi(cluster, await readmeAccount(cluster), options);
  await apply(cluster, [
    podManifest(waiting, { sidecar: true, serves: true }),
    podManifest("api-away-plain", { serves: true }),
    podManifest("api-away-excluded", { namespace: "kube-system", sidecar: true, serves: true }),
  ]);
  const pods = [waiting, ...others];
  await Promise.all(pods.map((name) => servingSandbox(cluster, name)));
  const first = await Promise.all(pods.map((name) => cluster.crictl.find(name)));

  await cluster.apiServer.stop();
  try {
    await Promise.all(first.map((id) => cluster.crictl.stop(id)));

    const running = await Promise.all(others.map((name) => servingSandbox(cluster, name)));
    expect(running.filter(({ id }) => first.includes(id))).toEqual([]);
    expect(running.map(({ netns }) => rulesIn(cluster.box, netns))).toEqual([[], []]);
    expect(others.map((name) => lastAdd(cluster, name))).toMatchObject([
      {
        skipped: "the API server does not answer, and the runtime's annotations mark no proxy",
      },
      { skipped: "namespace kube-system is excluded" },
    ]);
    await until(
      () => lastAdd(cluster, waiting)?.level === "error" || undefined,
      () => "an ADD that failed",
    );
    expect(lastAdd(cluster, waiting)).toMatchObject({
      code: 11,
      msg: `the API server did not answer: GET ${podUrl(waiting)}: connect ECONNREFUSED 10.200.0.1:6443`,
    });
    expect(await cluster.crictl.find(waiting)).toBe("");
    await expect
      .poll(() => kept(cluster.box, ipv4Network), { timeout: 30_000 })
      .toEqual({
        records: [],
        leases: running.map(({ ip }) => ip).toSorted(),
        results: running.map(({ id }) => `${ipv4Network}-${id}-eth0`).toSorted(),
        netns: running.map(({ netns }) => basename(netns)).toSorted(),
      });
  } finally {
    await cluster.apiServer.start();
    await reunite(cluster);
  }

  const { netns } = await servingSandbox(cluster, waiting);
  expect(rulesIn(cluster.box, netns)).toEqual(redirected);
  expect(await failureOf(cluster, waiting)).toContain(
    `plugin type="sluice" failed (add): the API server did not answer: GET ${podUrl(waiting)}: connect ECONNREFUSED 10.200.0.1:6443; a pod that may be meshed does not start without its redirect; see that the API server can be reached from the node`,
  );
});

/** Has the node's pods judged by what the API shows the bearer of this kubeconfig. */
async function askApi(cluster: Cluster, kubeconfig: string, options: object = {}): Promise<void> {
  const sluice = { kubernetes: { kubeconfig }, sluice: { "pod-source": "api", ...options } };
  await setChain(cluster, chain(cluster, { name: ipv4Network, sluice }));
}

const strings = z.array(z.string());
const rule = z.object({ apiGroups: strings, resources: strings, verbs: strings });
const rightsSchema = z.object({ kind: z.string(), rules: z.optional(z.array(rule)) });

/** The kubeconfig of an account `sluice` with the rights that README lists. */
async function readmeAccount(cluster: Cluster): Promise<string> {
  const objects = blocksIn(section("Drop-in for linkerd-cni"), "yaml").map((text) =>
    rightsSchema.parse(load(text)),
  );
  const role = objects.find(({ kind }) => kind === "ClusterRole");
  if (role === undefined) throw new Error("README lists no rights");
  return await makeServiceAccount(cluster, "sluice", role.rules ?? []);
}

/** A token of the account `sluice` that was good once: the object that it was bound to is gone. */
async function revokedToken(cluster: Cluster): Promise<string> {
  const metadata = { name: "sluice-token", namespace: "default" };
  await apply(cluster, [{ apiVersion: "v1", kind: "Secret", metadata }]);
  const bound = ["--bound-object-kind=Secret", "--bound-object-name=sluice-token"];
  const token = await kubectl(cluster, ["create", "token", "sluice", ...bound]);
  await kubectl(cluster, ["delete", "secret", "sluice-token"]);
  return token;
}

/** The path of the kubeconfig's copy whose token is in a file of its own. */
function withTokenFile(kubeconfig: string, tokenFile: string): string {
  const file = `${kubeconfig}.token-file`;
  const users = [{ name: "user", user: { tokenFile } }];
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(kubeconfig, "utf8")), users }));
  return file;
}

/**
 * Waits until scheduler and kubelet hear of new pods. Having lost the API server, they watch it again after up to a minute;
 * until then no pod of a test is started or taken away.
 */
async function reunite(cluster: Cluster): Promise<void> {
  await apply(cluster, [podManifest("api-back")]);
  await kubectl(cluster, ["wait", "--for=condition=Ready", "--timeout=150s", "pod/api-back"]);
}

function podUrl(name: string): string {
  return `${apiServerUrl}/api/v1/namespaces/default/pods/${name}`;
}

/** The last ADD of a pod that is in our log. */
function lastAdd({ box }: Cluster, name: string) {
  return logged(box).findLast(({ command, pod }) => command === "ADD" && pod.name === name);
}

/** Why a pod's sandbox was not made, as its event says it: waits for one. */
async function failureOf(cluster: Cluster, name: string): Promise<string> {
  return await until(
    async () => (await eventsOf(cluster, name, "FailedCreatePodSandBox"))[0],
    () => `an event about the failed sandbox of ${name}`,
  );
}

type Sandbox = { readonly id: string; readonly ip: string; readonly netns: string };

/** The running sandbox of a pod, as the runtime knows it: also while there is no API server to ask. */
async function sandboxOf({ crictl }: Cluster, name: string): Promise<Sandbox> {
  const id = await crictl.find(name);
  const [ip, netns] = await Promise.all([crictl.address(id), crictl.netns(id)]);
  return { id, ip, netns };
}

/** Waits until a pod's app answers, and gives its sandbox. */
async function servingSandbox(cluster: Cluster, name: string): Promise<Sandbox> {
  return await until(
    async () => {
      if ((await cluster.crictl.find(name)) === "") return undefined;
      const sandbox = await sandboxOf(cluster, name);
      const ask = ["curl", "--silent", "--max-time", "2", `http://${sandbox.ip}:${webPort}/`];
      return (await cluster.box.run(ask)).stdout === page ? sandbox : undefined;
    },
    () => `an answer from ${name}`,
  );
}
