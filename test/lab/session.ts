// A session by which a test writes rules into a netns of its own, through the node's programs, with no attachment and no record.
import type { Session } from "../../src/netfilter/converge/left-out.ts";
import { makeClient } from "../../src/netfilter/iptables/client.ts";
import type { Backend, Family } from "../../src/netfilter/table.ts";
import type { Exec } from "../../src/netns/exec.ts";
import type { Netns } from "../../src/netns/path.ts";
import { nodeToolbox } from "../../src/netns/toolbox.ts";
import { equip } from "../../src/node/choice.ts";
import { openPrograms } from "../../src/node/programs.ts";

/** For one family through one backend; children are started by `exec`. */
export async function openSession(
  exec: Exec,
  netns: Netns,
  { backend, family }: { readonly backend: Backend; readonly family: Family },
): Promise<Session> {
  const host = { exec, toolbox: nodeToolbox(process.env["PATH"]), nssMask: () => [] };
  return {
    client: makeClient(host),
    place: netns,
    choice: await equip(openPrograms(host), { backend, reason: "the test's" }, [family]),
    remainingMs: () => 20_000,
    sleep: () => Promise.resolve(),
  };
}
