// Tools that are too old for some options are called without them.
import { expect } from "vitest";
import { type Tool, type Tools, versioned } from "../../lab/fake-tools.ts";
import { linkerd } from "../../lab/states.ts";
import { confOf } from "../netns/level.ts";
import { test } from "./node.ts";

/** Tools by age: what they say to --version, and the flags that their restore is to get. */
const ages: readonly { name: string; version: string; flags: string }[] = [
  { name: "1.4.21", version: "iptables-restore v1.4.21", flags: "--noflush" },
  { name: "1.6.1", version: "iptables-restore v1.6.1", flags: "--noflush" },
  { name: "1.6.2", version: "iptables-restore v1.6.2", flags: "--noflush --wait 5" },
  { name: "1.8.4", version: "iptables-restore v1.8.4 (legacy)", flags: "--noflush --wait 5" },
  { name: "1.8.9", version: "iptables-restore v1.8.9 (nf_tables)", flags: "--noflush --wait 5" },
];

test.concurrent.for(ages)(
  "restore $name is called with $flags",
  async ({ version, flags }, { node }) => {
    const backend = version.includes("nf_tables") ? "nft" : "legacy";
    node.tools.install(plainTools(backend, (restore) => versioned(version, restore)));
    const conf = { ...confOf(), linkerd: { ...linkerd, "iptables-mode": "plain" } };

    const answer = await node.call("ADD", conf);

    expect(answer).toMatchObject({ exitCode: 0, stdout: JSON.stringify(conf.prevResult) });
    const calls = node.tools.calls().filter((call) => !call.endsWith("--version"));
    expect(calls).toStrictEqual([`iptables-restore ${flags}`, saveCall(backend)]);
  },
);

// Before 1.6.2 restore does not know the question, and takes it for rules on stdin.
test.concurrent("a restore that knows no --version is called without --wait", async ({ node }) => {
  const old: Tool = {
    script: `[ "$1" = --version ] && { cat >/dev/null; echo "unrecognized option" >&2; exit 1; }
exec "$real/iptables-legacy-restore" "$@"`,
  };
  node.tools.install(plainTools("legacy", () => old));
  const conf = { ...confOf(), linkerd: { ...linkerd, "iptables-mode": "plain" } };

  const answer = await node.call("ADD", conf);

  expect(answer.exitCode).toBe(0);
  const calls = node.tools.calls().filter((call) => !call.endsWith("--version"));
  expect(calls).toStrictEqual(["iptables-restore --noflush", "iptables-save "]);
});

function plainTools(backend: string, restore: (real: Tool) => Tool): Tools {
  return {
    "iptables-restore": restore({ link: `iptables-${backend}-restore` }),
    "iptables-save": { script: `exec "$real/iptables-${backend}-save" "$@"` },
  };
}

function saveCall(backend: string): string {
  return backend === "nft" ? "iptables-save -t nat" : "iptables-save ";
}
