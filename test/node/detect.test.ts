// What a look at the kubelet's hint chains comes to, as ADD tells and keeps it.
import { expect, test } from "vitest";
import { cni, conf, succeeded, withLinkerd } from "../fake/call.ts";
import type { ToolName } from "../fake/iptables.ts";
import { makeWorld, type World } from "../fake/world.ts";

const auto = withLinkerd({ "iptables-mode": "auto" });
const result = succeeded(JSON.stringify(conf.prevResult));
const message = "backend detected";

/** A world that was asked for a pod, with the hints in these tools' mangle. */
async function asked(...tools: readonly ToolName[]): Promise<World> {
  const world = makeWorld();
  for (const tool of tools) world.iptables.mangle.set(`host ${tool}`, ["KUBE-IPTABLES-HINT"]);
  expect(await cni(world, "ADD", auto)).toEqual(result);
  return world;
}

test("hints in both backends are doubtful, and told as a warning", async () => {
  const world = await asked("iptables-nft", "iptables-legacy");
  const reason =
    "the kubelet's hint chains are in nft (and legacy has them too: left from before?)";
  const decision = { backend: "nft", reason, provisional: false, doubtful: true };
  expect(world.memory.read().decision).toEqual(decision);
  expect(world.lines[0]).toEqual({ level: "warn", message, ...decision });
});

test.each(["nft", "legacy"] as const)("hints in %s alone leave no doubt", async (backend) => {
  const world = await asked(`iptables-${backend}`, `ip6tables-${backend}`);
  const reason = `the kubelet's hint chains are in ${backend}`;
  const decision = { backend, reason, provisional: false };
  expect(world.memory.read().decision).toEqual(decision);
  expect(world.lines[0]).toEqual({ level: "info", message, ...decision });
});
