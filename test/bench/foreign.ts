// `node test/bench/foreign.ts [RULES...]`: what CHECK takes where somebody else has so many rules in the pod's nat table, by
// backend: half of them ahead of our jump, none of which takes its traffic. Needs root, and what `npm run build` made.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Backend, backends } from "../../src/netfilter/table.ts";
import { makeNetns } from "../lab/netns.ts";
import { callPlugin } from "../lab/plugin.ts";
import { linkerd, restore } from "../lab/states.ts";
import { load } from "./machine.ts";

const given = process.argv.slice(2).map(Number);
const counts = given.length > 0 ? given : [0, 1_000, 5_000, 20_000, 50_000, 100_000];

console.log("| backend | foreign rules | CHECK, seconds | exit |\n|---|---|---|---|");
for (const backend of backends) for (const count of counts) measure(backend, count);
console.log(`load: ${load()}`);

function measure(backend: Backend, count: number): void {
  const netns = makeNetns("foreign");
  const stateDir = mkdtempSync(join(tmpdir(), "slc-state-"));
  const conf = {
    cniVersion: "1.1.0",
    name: "bench",
    type: "sluice",
    linkerd: { ...linkerd, "iptables-mode": backend },
    sluice: { "state-dir": stateDir },
    prevResult: { cniVersion: "1.1.0", ips: [{ address: "10.9.0.2/24" }] },
  };
  const call = (command: string) => {
    const env = { COMMAND: command, CONTAINERID: "c1", NETNS: netns.path, IFNAME: "eth0" };
    return callPlugin({ ...env, PATH: "/opt/cni/bin" }, conf);
  };
  try {
    call("ADD");
    restore({ netns, backend, family: "ipv4" }, foreign(count), "--noflush");
    const began = performance.now();
    const { exitCode } = call("CHECK");
    const seconds = ((performance.now() - began) / 1_000).toFixed(2);
    console.log(`| ${backend} | ${count} | ${seconds} | ${exitCode} |`);
  } finally {
    netns.remove();
    rmSync(stateDir, { recursive: true, force: true });
  }
}

// As kube-proxy's or Docker's: with a comment, a destination and a port, in a chain that both hooks lead to.
function foreign(count: number): string {
  const rules = Array.from({ length: count }, (_, i) => {
    const address = `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;
    return `-A FOREIGN -d ${address}/32 -p udp -m udp --dport 53 -m comment --comment "some service" -j ACCEPT`;
  });
  const jumps = ["-I OUTPUT -j FOREIGN", "-A PREROUTING -j FOREIGN"];
  return ["*nat", ":FOREIGN - [0:0]", ...rules, ...jumps, "COMMIT", ""].join("\n");
}
