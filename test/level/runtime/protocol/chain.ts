// A list of five plugins run by cnitool, on a node of the test's own: what our plugin is given and what it says is kept on
// its way, since libcni writes both anew.
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { bin, cniPluginsDir } from "../../../../build/setup/paths.mjs";
import { searchPath } from "../../../lab/host.ts";
import { type LabNetns, makeNetns } from "../../../lab/netns.ts";
import { type CniAnswer, plugin } from "../../../lab/plugin.ts";
import { linkerd, type Scene } from "./scene.ts";

export type Chain = {
  /** Runs the list for the scene's pod. */
  readonly cnitool: (verb: string) => Promise<CniAnswer>;
  /** What our plugin was given on stdin, and what it printed, in its last call of a verb. */
  readonly seen: (verb: string) => { readonly stdin: string; readonly stdout: string };
  readonly remove: () => void;
};

/** Makes the chain bridge, tuning, ours, portmap, tuning; `keys` are the list's, beside its name and plugins. */
export function makeChain(scene: Scene, keys: object): Chain {
  const { dir, pod } = scene;
  for (const name of ["bin", "net.d", "seen", "var-lib"]) mkdirSync(join(dir, name));
  for (const name of ["bridge", "host-local", "tuning", "portmap"]) {
    symlinkSync(join(cniPluginsDir, name), join(dir, "bin", name));
  }
  writeFileSync(join(dir, "bin/sluice"), keeper, { mode: 0o755 });
  const list = { name: "slc-chain", ...keys, plugins: pluginsOf(scene) };
  writeFileSync(join(dir, "net.d/10-chain.conflist"), JSON.stringify(list));
  const node = makeNetns("node");
  const env = {
    PATH: searchPath,
    CNI_PATH: join(dir, "bin"),
    NETCONFPATH: join(dir, "net.d"),
    SEEN: join(dir, "seen"),
    PLUGIN: plugin,
    CAP_ARGS: JSON.stringify({ portMappings: [] }),
  };
  return {
    cnitool: (verb) => onNode(node, dir, { verb, path: pod.path, env }),
    seen: (verb) => {
      const read = (name: string) => readFileSync(join(dir, "seen", `${verb}.${name}`), "utf8");
      return { stdin: read("in"), stdout: read("out") };
    },
    remove: node.remove,
  };
}

const keeper = `#!/bin/sh
cat >"$SEEN/$CNI_COMMAND.in"
"$PLUGIN" <"$SEEN/$CNI_COMMAND.in" >"$SEEN/$CNI_COMMAND.out"
status=$?
cat "$SEEN/$CNI_COMMAND.out"
exit $status
`;

function pluginsOf({ dir, stateDir }: Scene): object[] {
  const range = (subnet: string) => [{ subnet }];
  const ipam = {
    type: "host-local",
    dataDir: join(dir, "leases"),
    ranges: [range("10.213.8.0/24"), range("fd00:213:8::/64")],
    routes: [{ dst: "0.0.0.0/0" }, { dst: "::/0" }],
  };
  return [
    { type: "bridge", bridge: "slc-br1", isGateway: true, ipam },
    { type: "tuning", sysctl: { "net.ipv4.conf.all.log_martians": "1" } },
    { type: "sluice", linkerd: { ...linkerd, ipv6: true }, sluice: { "state-dir": stateDir } },
    { type: "portmap", capabilities: { portMappings: true } },
    { type: "tuning", mtu: 1400, dataDir: join(dir, "tuning") },
  ];
}

type Run = {
  readonly verb: string;
  readonly path: string;
  readonly env: Readonly<Record<string, string>>;
};

// libcni's cache, /var/lib/cni, cannot be moved: cnitool sees another /var/lib.
async function onNode(node: LabNetns, dir: string, { verb, path, env }: Run): Promise<CniAnswer> {
  const script = 'mount --bind "$1" /var/lib && shift && exec "$@"';
  const enter = [`--net=${node.path}`, "--", "unshare", "--mount", "sh", "-c", script, "sh"];
  const cnitool = [join(bin, "cnitool"), verb, "slc-chain", path];
  const { exitCode, stdout, stderr } = await execa(
    "nsenter",
    [...enter, join(dir, "var-lib"), ...cnitool],
    { env, extendEnv: false, input: "", reject: false, stripFinalNewline: false },
  );
  return { exitCode, stdout, stderr };
}
