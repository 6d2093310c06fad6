// Pods in the cluster: applied, waited for, looked at, taken away.
import { type Cluster, kubectl } from "./cluster.ts";
import { type PodOptions, podManifest } from "./manifest.ts";

/** A pod that runs. */
export type Pod = {
  readonly name: string;
  readonly ips: readonly string[];
  /** The sandbox's id: for plugins, the container. */
  readonly containerId: string;
  /** The path of its netns on the node. */
  readonly netns: string;
};

/** Applies objects as `kubectl apply` does. */
export async function apply(cluster: Cluster, objects: readonly object[]): Promise<void> {
  const list = { apiVersion: "v1", kind: "List", items: objects };
  await kubectl(cluster, ["apply", "--filename", "-"], JSON.stringify(list));
}

/** Applies a pod, and waits until it is ready. */
export async function applyPod(
  cluster: Cluster,
  name: string,
  options: PodOptions = {},
): Promise<Pod> {
  await apply(cluster, [podManifest(name, options)]);
  await waitForPods(cluster, [name]);
  const [pod] = await runningPods(cluster, [name]);
  if (pod === undefined) throw new Error(`pod ${name} has gone`);
  return pod;
}

/** Waits until the pods are ready; what the node says of them is in the error when they are not. */
export async function waitForPods(cluster: Cluster, names: readonly string[]): Promise<void> {
  const pods = names.map((name) => `pod/${name}`);
  try {
    await kubectl(cluster, ["wait", "--for=condition=Ready", "--timeout=60s", ...pods]);
  } catch (cause) {
    const events = (await kubectl(cluster, ["get", "events"])).split("\n");
    const about = events.filter((line) => names.some((name) => line.includes(`pod/${name} `)));
    throw new Error(`pods are not ready:\n${about.join("\n")}`, { cause });
  }
}

/** The pods of these names, which run. */
export async function runningPods(cluster: Cluster, names: readonly string[]): Promise<Pod[]> {
  const { items }: PodList = JSON.parse(await kubectl(cluster, ["get", "pods", ...json]));
  const wanted = items.filter(({ metadata }) => names.includes(metadata.name));
  return await Promise.all(
    wanted.map(async ({ metadata, status }) => {
      const containerId = await cluster.crictl.find(metadata.name);
      return {
        name: metadata.name,
        ips: status.podIPs.map(({ ip }) => ip),
        containerId,
        netns: await cluster.crictl.netns(containerId),
      };
    }),
  );
}

/** The messages of a pod's events of this kind, as `kubectl describe` shows them. */
export async function eventsOf(cluster: Cluster, name: string, reason: string): Promise<string[]> {
  const selector = `--field-selector=involvedObject.name=${name},reason=${reason}`;
  const { items }: EventList = JSON.parse(
    await kubectl(cluster, ["get", "events", selector, ...json]),
  );
  return items.map(({ message }) => message);
}

/** Takes all pods and Services of the tests away, and waits until the pods have gone. */
export async function deleteAll(cluster: Cluster): Promise<void> {
  await kubectl(cluster, [
    "delete",
    "pods,services",
    "--all-namespaces",
    "--selector=app",
    "--timeout=60s",
  ]);
}

/** Runs a program in a pod's app; throws when it fails. */
export async function execIn(
  cluster: Cluster,
  name: string,
  argv: readonly string[],
): Promise<string> {
  return await kubectl(cluster, ["exec", name, "--container", "app", "--", ...argv]);
}

const json = ["--output", "json"];

type PodList = {
  readonly items: {
    readonly metadata: { readonly name: string };
    readonly status: { readonly podIPs: { readonly ip: string }[] };
  }[];
};
type EventList = { readonly items: { readonly message: string }[] };
