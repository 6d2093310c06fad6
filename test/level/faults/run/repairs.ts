// Repairs under traffic: a pod that has drifted is brought back by ADD again and again, while connections are opened all
// the time. None of them may pass the proxy by, also not for an instant.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Backend } from "../../../../src/netfilter/table.ts";
import { inboundJump, outboundJump, rule } from "../../../lab/states.ts";
import { call } from "./call.ts";
import { load, runInside } from "./tables.ts";
import { type Met, makeTraffic, proxied, type Traffic } from "./traffic.ts";

export type RepairOptions = { readonly backend: Backend; readonly repairs: number };

export type Repaired = {
  readonly repairs: number;
  readonly outbound: Met;
  readonly inbound: Met;
  readonly faults: readonly string[];
};

/** Drifts that leave the redirect in place, as nat lines. What the next one needs is there again after each repair. */
const drifts: readonly (readonly string[])[] = [
  [`-D${rule.loopback.slice(2)}`],
  [`-D${rule.proxyUid.slice(2)}`, rule.proxyUid],
  ["-I PROXY_INIT_OUTPUT -p tcp -m tcp --dport 443 -j RETURN"],
  [outboundJump, inboundJump],
  [stamped(outboundJump), `-D${outboundJump.slice(2)}`],
  ["-I OUTPUT -p tcp -m tcp --dport 9 -j ACCEPT"],
  [`-D${rule.excludeInbound.slice(2)}`],
];

/** Repairs a pod so many times; each seventh time it has a second set of rules in the other backend as well. */
export async function repairUnderTraffic({ backend, repairs }: RepairOptions): Promise<Repaired> {
  const traffic = await makeTraffic();
  const stateDir = mkdtempSync(join(tmpdir(), "slc-repair-"));
  try {
    const pod = { traffic, backend, stateDir };
    const faults = await add(pod);
    traffic.start({ outbound: 1_000, inbound: 250 });
    for (let i = 0; i < repairs; i++) {
      await drift(pod, i);
      faults.push(...(await add(pod)));
    }
    const { outbound, inbound } = await traffic.stop();
    faults.push(...passed("outbound", outbound), ...passed("inbound", inbound));
    return { repairs, outbound, inbound, faults };
  } finally {
    traffic.remove();
    rmSync(stateDir, { recursive: true, force: true });
  }
}

type Pod = { readonly traffic: Traffic; readonly backend: Backend; readonly stateDir: string };

async function drift({ traffic: { pod }, backend }: Pod, number: number): Promise<void> {
  const lines = drifts[number % drifts.length] ?? [];
  const text = ["*nat", ...lines, "COMMIT", ""].join("\n");
  const commands = ["iptables", "ip6tables"].map((name) => {
    return `echo "$text" | ${name}-${backend}-restore --noflush`;
  });
  await runInside(pod, `text=$(cat)\n${commands.join("\n")}`, text);
  if (number % 7 !== 6) return;
  const other = backend === "nft" ? "legacy" : "nft";
  const both = [
    { backend: other, family: "ipv4" },
    { backend: other, family: "ipv6" },
  ] as const;
  await load(pod, both, "all in order");
}

/** One ADD; what is wrong with its answer. */
async function add(pod: Pod): Promise<string[]> {
  const { exitCode, stdout, stderr } = await call("ADD", { ...pod, netns: pod.traffic.pod });
  if (exitCode !== 0) return [`ADD failed: ${stdout}`];
  return stderr.includes('"changed":["ipv4","ipv6"]') ? [] : [`ADD repaired nothing: ${stderr}`];
}

function passed(direction: keyof typeof proxied, { answers }: Met): string[] {
  const others = Object.entries(answers).filter(([answer]) => answer !== proxied[direction]);
  return others.map(([answer, count]) => `${count} ${direction} connections met: ${answer}`);
}

function stamped(jump: string): string {
  return jump.replace(/"[^"]+"/, '"proxy-init/install-proxy-init-output/1574720803"');
}
