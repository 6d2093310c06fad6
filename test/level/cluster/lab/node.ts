// The node's own part: its network, the kubelet and kube-proxy. containerd is as in test/runtime/cri.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Box } from "../../runtime/cri/box.ts";
import { program } from "./control-plane.ts";
import { nodeIp, type Pki } from "./pki.ts";

/** The node's name. */
export const nodeName = "lab";

/** Gives the node an address of its own and lets it forward. */
export async function setUpNetwork(box: Box): Promise<void> {
  const commands = [
    "ip link add node0 type veth peer name node1",
    `ip address add ${nodeIp}/24 dev node0`,
    "ip link set node0 up",
    "ip link set node1 up",
    "ip route add default dev node0",
    "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1",
  ];
  await mustRun(box, commands.join(" && "));
}

// What the kubelet sets for the whole machine when it finds something else: it finds it, and the machine stays as it is.
const machineSettings = {
  "vm/overcommit_memory": 1,
  "vm/panic_on_oom": 0,
  "kernel/panic": 10,
  "kernel/panic_on_oops": 1,
  "kernel/keys/root_maxkeys": 1_000_000,
  "kernel/keys/root_maxbytes": 25_000_000,
} as const;

async function pretendSettings(box: Box): Promise<void> {
  const dir = join(box.dir, "settings");
  mkdirSync(dir);
  for (const [name, value] of Object.entries(machineSettings)) {
    const file = join(dir, name.replaceAll("/", "."));
    writeFileSync(file, `${value}\n`);
    await mustRun(box, `mount --bind ${file} /proc/sys/${name}`);
  }
}

/** Starts the kubelet and kube-proxy. */
export async function startNodeAgents(box: Box, pki: Pki, socket: string): Promise<void> {
  await pretendSettings(box);
  const [kubelet, proxy] = [join(box.dir, "kubelet.json"), join(box.dir, "kube-proxy.json")];
  const rootDir = join(box.dir, "kubelet");
  writeFileSync(kubelet, JSON.stringify(kubeletConfiguration(box, pki, socket)));
  writeFileSync(proxy, JSON.stringify(proxyConfiguration(pki)));
  box.start("kubelet", [
    program("kubelet"),
    `--config=${kubelet}`,
    `--kubeconfig=${pki.kubeconfig("system:node:lab")}`,
    `--root-dir=${rootDir}`,
    `--cert-dir=${join(rootDir, "pki")}`,
    `--hostname-override=${nodeName}`,
    `--node-ip=${nodeIp}`,
  ]);
  box.start("kube-proxy", [program("kube-proxy"), `--config=${proxy}`]);
}

function kubeletConfiguration({ dir, cgroup }: Box, pki: Pki, socket: string): object {
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: pki.file("ca.crt") },
    },
    authorization: { mode: "Webhook" },
    containerRuntimeEndpoint: `unix://${socket}`,
    // The tests ask little of the machine: no cgroup tree of the kubelet's own, no limits, no scores.
    cgroupDriver: "cgroupfs",
    cgroupRoot: cgroup,
    cgroupsPerQOS: false,
    enforceNodeAllocatable: [],
    failCgroupV1: false,
    failSwapOn: false,
    localStorageCapacityIsolation: false,
    oomScoreAdj: 0,
    evictionHard: { "memory.available": "100Mi" },
    // Sooner than by default (10 s), so that tests need not wait.
    nodeStatusUpdateFrequency: "1s",
    volumePluginDir: join(dir, "kubelet/plugins"),
  };
}

function proxyConfiguration(pki: Pki): object {
  return {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode: "iptables",
    clientConnection: { kubeconfig: pki.kubeconfig("system:kube-proxy") },
    hostnameOverride: nodeName,
    // Settings of the whole machine: left alone.
    conntrack: {
      maxPerCore: 0,
      min: 0,
      tcpEstablishedTimeout: "0s",
      tcpCloseWaitTimeout: "0s",
    },
  };
}

async function mustRun(box: Box, script: string): Promise<void> {
  const { exitCode, stderr } = await box.run(["sh", "-c", script]);
  if (exitCode !== 0) throw new Error(`${script}: ${stderr}`);
}
