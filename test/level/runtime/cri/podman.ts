// podman 4 with its CNI backend, in a box: containers of a directory, without images.
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execaSync } from "execa";
import { cniPluginsDir } from "../../../../build/setup/paths.mjs";
import type { Box, Outcome } from "./box.ts";
import type { Chain } from "./chain.ts";
import { layOutBusybox } from "./image.ts";
import { installRecorder, type Recorded, recorded } from "./recorder.ts";

export type Podman = {
  /** Starts a container in the network of this name; what podman says is its id when it starts. */
  readonly run: (name: string, network: string) => Promise<Outcome>;
  readonly reload: (name: string) => Promise<Outcome>;
  readonly remove: (name: string) => Promise<Outcome>;
  /** The path of the container's netns. */
  readonly netns: (name: string) => Promise<string>;
  /** The calls of our plugin. */
  readonly recorded: () => Recorded[];
};

/** Why there is no podman for this; undefined when there is one. */
export function podmanLack(): string | undefined {
  const { stdout } = execaSync("podman", ["--version"], { reject: false });
  return / 4\./.test(stdout ?? "")
    ? undefined
    : "podman 4, the last with a CNI backend, is not installed";
}

/** Lays out podman's files in the box, with a network for each chain. */
export function layOutPodman(box: Box, chains: readonly Chain[]): Podman {
  const { dir } = box;
  const [binDir, confDir] = [join(dir, "cni-bin"), join(dir, "net.d")];
  for (const path of [binDir, confDir]) mkdirSync(path);
  for (const name of ["bridge", "host-local"]) {
    symlinkSync(join(cniPluginsDir, name), join(binDir, name));
  }
  installRecorder(binDir);
  for (const chain of chains) {
    writeFileSync(join(confDir, `${chain.name}.conflist`), JSON.stringify(chain));
  }
  const root = layOutBusybox(join(dir, "root"));
  writeFileSync(join(dir, "containers.conf"), configuration(binDir, confDir));
  const call = (...args: readonly string[]) =>
    box.run(["podman", ...places(dir), ...args], {
      env: { CONTAINERS_CONF: join(dir, "containers.conf"), HOME: dir },
    });
  return {
    run: (name, network) => {
      const options = ["--name", name, "--network", network, "--cgroup-parent", box.cgroup];
      return call(
        "run",
        "--detach",
        ...options,
        ...limits,
        "--rootfs",
        root,
        "/bin/sleep",
        "1000000",
      );
    },
    reload: (name) => call("network", "reload", name),
    remove: (name) => call("rm", "--force", "--ignore", "--time", "0", name),
    netns: async (name) =>
      (await call("inspect", "--format", "{{.NetworkSettings.SandboxKey}}", name)).stdout,
    recorded: () => recorded(binDir),
  };
}

// Podman's own limits are higher than some machines allow.
const limits = ["nofile=1024:1024", "nproc=4096:4096"].flatMap((limit) => ["--ulimit", limit]);

function places(dir: string): string[] {
  const options = ["--root", join(dir, "storage"), "--runroot", "/run/podman"];
  return [...options, "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"];
}

function configuration(binDir: string, confDir: string): string {
  return `[containers]
cgroupns = "host"
[network]
network_backend = "cni"
cni_plugin_dirs = ["${binDir}"]
network_config_dir = "${confDir}"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
`;
}
