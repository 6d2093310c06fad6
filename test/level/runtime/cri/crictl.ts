// The CRI's client: asks a containerd for sandboxes as a kubelet does, and for what it thinks of its network.
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bin } from "../../../../build/setup/paths.mjs";
import type { Box } from "./box.ts";

export type Sandbox = {
  readonly name: string;
  readonly annotations?: Readonly<Record<string, string>>;
};

export type Condition = {
  readonly type: string;
  readonly status: boolean;
  readonly reason: string;
  readonly message: string;
};

export type Crictl = {
  /** Runs a sandbox in the namespace `lab` and gives its id; throws with the runtime's words when it does not start. */
  readonly run: (sandbox: Sandbox) => Promise<string>;
  readonly stop: (id: string) => Promise<void>;
  /** Stops it as well, if need be. */
  readonly remove: (id: string) => Promise<void>;
  /** The ids of all sandboxes that the runtime knows. */
  readonly all: () => Promise<string[]>;
  /** The id of the running sandbox of a pod. */
  readonly find: (pod: string) => Promise<string>;
  /** The sandbox's netns, as the runtime names it. */
  readonly netns: (id: string) => Promise<string>;
  /** Its first address. */
  readonly address: (id: string) => Promise<string>;
  readonly networkReady: () => Promise<Condition | undefined>;
  /** The texts of the conf lists that are loaded. */
  readonly lists: () => Promise<string[]>;
};

const program = join(bin, "crictl");

/** Why there is no client; undefined when there is one. */
export function crictlLack(): string | undefined {
  return existsSync(program) ? undefined : "crictl is not built (npm run setup)";
}

/** A client of the runtime that listens at the socket. */
export function crictlOf(box: Box, socket: string): Crictl {
  const pods = join(box.dir, "pods");
  const config = join(box.dir, "crictl.yaml");
  mkdirSync(pods);
  writeFileSync(config, `runtime-endpoint: unix://${socket}\ntimeout: 60\n`);
  const call = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await box.run([program, "--config", config, ...args]);
    if (exitCode !== 0) throw new Error(`crictl ${args.join(" ")}: ${said(stderr)}`);
    return stdout;
  };
  const inspect = async (id: string): Promise<Inspected> => JSON.parse(await call("inspectp", id));
  const info = async (): Promise<Info> => JSON.parse(await call("info"));
  return {
    run: async (sandbox) => {
      const file = join(pods, `${sandbox.name}.json`);
      writeFileSync(file, JSON.stringify(requestOf(sandbox, box)));
      return await call("runp", file);
    },
    stop: async (id) => void (await call("stopp", id)),
    remove: async (id) => void (await call("rmp", "--force", id)),
    all: async () => (await call("pods", "--quiet", "--no-trunc")).split("\n").filter(Boolean),
    find: async (pod) =>
      await call("pods", "--quiet", "--no-trunc", "--state", "ready", "--name", `^${pod}$`),
    netns: async (id) => {
      const { namespaces } = (await inspect(id)).info.runtimeSpec.linux;
      const path = namespaces.find(({ type }) => type === "network")?.path ?? "";
      // From outside the box, a link to /run would lead to the machine's.
      return path.replace("/var/run/", "/run/");
    },
    address: async (id) => (await inspect(id)).status.network.ip,
    networkReady: async () =>
      (await info()).status.conditions.find(({ type }) => type === "NetworkReady"),
    lists: async () => {
      const { Networks = [] } = (await info()).cniconfig ?? {};
      return Networks.map(({ Config }) => Config.Source);
    },
  };
}

// Its last line, out of its quotes: what the runtime said.
function said(stderr: string): string {
  const quoted = / msg=(".*")$/.exec(stderr.trimEnd())?.[1];
  return quoted === undefined ? stderr : JSON.parse(quoted);
}

/** What is read of `crictl info`; without a conf list there are no networks. */
type Info = {
  readonly status: { readonly conditions: readonly Condition[] };
  readonly cniconfig?: { readonly Networks?: { readonly Config: { readonly Source: string } }[] };
};

type Inspected = {
  readonly status: { readonly network: { readonly ip: string } };
  readonly info: {
    readonly runtimeSpec: {
      readonly linux: { readonly namespaces: { readonly type: string; readonly path?: string }[] };
    };
  };
};

function requestOf({ name, annotations = {} }: Sandbox, { dir, cgroup }: Box): object {
  return {
    metadata: { name, uid: `uid-of-${name}`, namespace: "lab", attempt: 0 },
    hostname: name,
    log_directory: join(dir, "log"),
    annotations,
    linux: { cgroup_parent: cgroup },
  };
}
