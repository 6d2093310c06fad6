// containerd in a box, as a service manager would start it: the machine's own (Debian: 1.6), or the one of set-up (2.4).
import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execaSync } from "execa";
import { containerdDir } from "../../../../build/setup/paths.mjs";
import { searchPath } from "../../../lab/host.ts";
import type { Box, Outcome, Service } from "./box.ts";
import type { Chain } from "./chain.ts";
import type { Crictl } from "./crictl.ts";
import { layOutPlugins } from "./plugins.ts";
import { until } from "./until.ts";

export type Release = {
  readonly version: string;
  /** The directory of containerd, its shim and ctr. */
  readonly dir: string;
};

export type Containerd = {
  readonly socket: string;
  readonly service: Service;
  /** Puts a conf list in the place of the one that is there, and waits until it is loaded. */
  readonly setChain: (chain: Chain, crictl: Crictl) => Promise<void>;
  readonly importImage: (file: string) => Promise<void>;
};

/** The image of every sandbox; containerd cannot start any before it is imported. */
export const pauseImage = "slc.local/pause:1";

/** The machine's containerd where it is one of old (1.x), as Debian 12's is. */
export function oldContainerd(): Release | undefined {
  const dir = searchPath.split(":").find((path) => existsSync(join(path, "containerd")));
  const release = dir === undefined ? undefined : releaseIn(dir);
  return release?.version.startsWith("1.") === true ? release : undefined;
}

/** The containerd that set-up built. */
export function newContainerd(): Release | undefined {
  return existsSync(join(containerdDir, "containerd")) ? releaseIn(containerdDir) : undefined;
}

function releaseIn(dir: string): Release {
  const { stdout } = execaSync(join(dir, "containerd"), ["--version"]);
  return { dir, version: / v?(\d+\.\d+\.\d+)/.exec(stdout)?.[1] ?? stdout };
}

/** Starts it, and waits until it answers. A second one goes on where a stopped one was. */
export async function startContainerd(box: Box, release: Release): Promise<Containerd> {
  const confDir = join(box.dir, "net.d");
  layOutPlugins(box);
  mkdirSync(confDir, { recursive: true });
  const socket = join(box.dir, "containerd.sock");
  const file = join(box.dir, "containerd.toml");
  writeFileSync(file, release.version.startsWith("1.") ? configOne(box) : configTwo(box));
  const service = box.start("containerd", [join(release.dir, "containerd"), "--config", file], {
    PATH: `${release.dir}:${searchPath}`,
  });
  const ctr = (...args: string[]): Promise<Outcome> =>
    box.run([join(release.dir, "ctr"), "--address", socket, "--namespace", "k8s.io", ...args]);
  await until(
    async () => {
      if (service.ended() !== undefined) throw new Error(`containerd ended: ${service.tail()}`);
      return (await ctr("version")).exitCode === 0 ? true : undefined;
    },
    () => `containerd's answer; it says\n${service.tail()}`,
  );
  return {
    socket,
    service,
    setChain: async (chain, crictl) => {
      const text = JSON.stringify(chain, null, 2);
      // Its watch sees renames within the directory only.
      const temporary = join(confDir, ".10-slc.tmp");
      writeFileSync(temporary, text);
      renameSync(temporary, join(confDir, "10-slc.conflist"));
      await until(
        async () => (await crictl.lists()).includes(text) || undefined,
        () => `the list ${chain.name} in containerd`,
      );
    },
    importImage: async (image) => {
      // From 2.0 on the import is the daemon's work unless it is asked for here, and the daemon unpacks for overlayfs only.
      const local = release.version.startsWith("1.") ? [] : ["--local"];
      const options = [...local, "--snapshotter", "native"];
      const { exitCode, stderr } = await ctr("images", "import", ...options, image);
      if (exitCode !== 0) throw new Error(`${image} was not imported: ${stderr}`);
    },
  };
}

const unused = ["aufs", "btrfs", "devmapper", "zfs", "erofs", "blockfile"].map(
  (name) => `io.containerd.snapshotter.v1.${name}`,
);

// Restricted: the tests may run without the right to give a process a lower score.
const restrictions = `restrict_oom_score_adj = true
  disable_apparmor = true`;

function configOne({ dir }: Box): string {
  return `version = 2
root = "${dir}/containerd/root"
state = "${dir}/containerd/state"
disabled_plugins = ${JSON.stringify(unused)}
[grpc]
  address = "${dir}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "${dir}/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${pauseImage}"
  ${restrictions}
  disable_tcp_service = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${dir}/cni-bin"
    conf_dir = "${dir}/net.d"
    max_conf_num = 1
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
`;
}

function configTwo({ dir }: Box): string {
  return `version = 3
root = "${dir}/containerd/root"
state = "${dir}/containerd/state"
disabled_plugins = ${JSON.stringify([...unused, "io.containerd.nri.v1.nri"])}
[grpc]
  address = "${dir}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "${dir}/containerd/opt"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "native"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "${pauseImage}"
[plugins."io.containerd.cri.v1.runtime"]
  ${restrictions}
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["${dir}/cni-bin"]
    conf_dir = "${dir}/net.d"
    max_conf_num = 1
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    snapshotter = "native"
`;
}
