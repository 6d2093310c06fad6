// What was read in a pod's netns is never written back: whatever a comment holds, our iptables-restore is given our own words
// only. Its input is noted, and a program that the text names would leave a mark.
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { backends } from "../../../src/netfilter/table.ts";
import { namesOf, realTools, type Tools } from "../../lab/fake-tools.ts";
import { linkerd, outboundJump, ownLines, save } from "../../lab/states.ts";
import { modeConf } from "../faults/advice.ts";
import { test } from "../faults/node.ts";

/** The machine's own, which note what they are given. */
function noting(suffix: string): Tools {
  const tools = namesOf(suffix).map((name) => {
    const script = name.endsWith("-restore")
      ? `tee -a "$dir/input" | "$real/${name}" "$@"`
      : `exec "$real/${name}" "$@"`;
    return [name, { script }] as const;
  });
  return { ...realTools, ...Object.fromEntries(tools) };
}

/** Our own words, and the constant ones of linkerd-init. */
const ours =
  /^(?:\*nat|COMMIT|-[NX] PROXY_INIT_(?:REDIRECT|OUTPUT)|:PROXY_INIT_(?:REDIRECT|OUTPUT) - \[0:0\]|-[AI] .*"sluice\/[a-z-]+" -j [A-Z_]+(?: --to-ports [0-9]+)?|-D (?:OUTPUT|PREROUTING) -m comment --comment "(?:sluice\/(?:out|in)bound|proxy-init\/install-proxy-init-(?:output|prerouting))" -j PROXY_INIT_(?:OUTPUT|REDIRECT)|)$/;

describe.for(backends.map((backend) => ({ backend })))("over $backend", ({ backend }) => {
  const conf = { ...modeConf(backend, "ipv4"), linkerd: { ...linkerd, "iptables-mode": backend } };
  const tool = `iptables-${backend}`;

  test.for([
    { where: "behind our jump", at: "-A" },
    { where: "ahead of our jump", at: "-I" },
  ])("nothing of a comment's lines is loaded when it stands $where", async ({ at }, { node }) => {
    const { tools, pod, call } = node;
    const place = { netns: pod, backend, family: "ipv4" } as const;
    const mark = join(tools.dir, "mark");
    const program = join(tools.dir, "program");
    writeFileSync(program, `#!/bin/sh\ntouch ${mark}\n`, { mode: 0o755 });
    tools.install(noting(`-${backend}`));
    expect(await call("ADD", conf)).toMatchObject({ exitCode: 0 });
    const lines = [
      "x",
      `-A OUTPUT --modprobe=${program} -V -j PROXY_INIT_OUTPUT`,
      `-A OUTPUT -j PROXY_INIT_OUTPUT --modprobe=${program}`,
      "-A ZZ ",
    ];
    pod.run(tool, ["-t", "nat", at, "OUTPUT", "-m", "comment", "--comment", lines.join("\n")]);

    expect(await call("CHECK", conf)).toMatchObject({ exitCode: 1 });
    expect(await call("ADD", conf)).toMatchObject({ exitCode: 1 });
    expect(await call("DEL", conf)).toMatchObject({ exitCode: 0, stdout: "" });

    expect(existsSync(mark)).toBe(false);
    expect(
      tools
        .input()
        .split("\n")
        .filter((line) => !ours.test(line)),
    ).toStrictEqual([]);
    expect(save(place)).not.toContain(":PROXY_INIT");
    expect(save(place)).not.toContain(outboundJump);
  });

  test("a jump of somebody's with a comment that we do not repeat is left, and told, and our chains are empty", async ({
    node,
  }) => {
    const { tools, pod, call } = node;
    const place = { netns: pod, backend, family: "ipv4" } as const;
    tools.install(noting(`-${backend}`));
    expect(await call("ADD", conf)).toMatchObject({ exitCode: 0 });
    const odd = ["-m", "comment", "--comment", 'a"b\\c $(x)', "-j", "PROXY_INIT_OUTPUT"];
    pod.run(tool, ["-t", "nat", "-A", "OUTPUT", ...odd]);
    const found = '-A OUTPUT -m comment --comment "a\\"b\\\\c $(x)" -j PROXY_INIT_OUTPUT';

    const checked = await call("CHECK", conf);
    expect(JSON.parse(checked.stdout)).toMatchObject({
      code: 100,
      details: `duplicate-jump (ipv4 nat OUTPUT): expected ${outboundJump}; found ${found}`,
    });
    const added = await call("ADD", conf);
    expect(JSON.parse(added.stdout)).toMatchObject({
      code: 101,
      msg: `/usr/sbin/${tool}-restore (${backend}, ipv4, table nat) failed: a rule of someone else's leads into our chain: ${found}`,
    });
    const deleted = await call("DEL", conf);
    expect(deleted).toMatchObject({ exitCode: 0, stdout: "" });
    expect(deleted.stderr).toContain("PROXY_INIT_OUTPUT (ipv4) is left, empty");

    expect(ownLines(save(place))).toStrictEqual([":PROXY_INIT_OUTPUT - [0:0]", found]);
    expect(
      tools
        .input()
        .split("\n")
        .filter((line) => !ours.test(line)),
    ).toStrictEqual([]);
  });

  test("tools that print without an end are ended, and named", async ({ node }) => {
    const { tools, call, pod } = node;
    tools.install({
      ...realTools,
      [`${tool}-save`]: { script: "while :; do head -c 1000000 /dev/zero; done" },
    });
    const added = await call("ADD", conf);
    expect(JSON.parse(added.stdout)).toMatchObject({
      code: 102,
      msg: `could not work in the netns of container c1: /usr/sbin/${tool}-save (${backend}, ipv4) printed more than 33554432 bytes, which nobody's rules take`,
    });
    tools.install(realTools);
    expect(await call("DEL", conf)).toMatchObject({ exitCode: 0, stdout: "" });
    expect(ownLines(save({ netns: pod, backend, family: "ipv4" }))).toStrictEqual([]);
  });

  test("jumps of linkerd-init's and other plain ones are taken out in our spelling", async ({
    node,
  }) => {
    const { tools, pod, call } = node;
    const place = { netns: pod, backend, family: "ipv4" } as const;
    tools.install(noting(`-${backend}`));
    expect(await call("ADD", conf)).toMatchObject({ exitCode: 0 });
    const jumps = [
      ["-m", "comment", "--comment", "proxy-init/install-proxy-init-output/1626275143"],
      ["-m", "comment", "--comment", ""],
      ["-p", "tcp", "-m", "tcp", "!", "--dport", "80:90"],
      ["-d", "10.0.0.0/8", "-o", "eth0", "-p", "tcp", "-m", "multiport", "--dports", "1,2,3:5"],
      ["-m", "owner", "!", "--uid-owner", "1000", "-m", "mark", "--mark", "0x1/0xff"],
      ["-m", "addrtype", "--dst-type", "LOCAL", "-m", "conntrack", "--ctstate", "NEW,RELATED"],
    ];
    for (const jump of jumps) {
      for (const verdict of ["-j", "-g"]) {
        pod.run(tool, ["-t", "nat", "-A", "OUTPUT", ...jump, verdict, "PROXY_INIT_OUTPUT"]);
      }
    }
    expect(await call("ADD", conf)).toMatchObject({ exitCode: 0 });
    expect(await call("CHECK", conf)).toMatchObject({ exitCode: 0 });
    for (const jump of jumps) {
      pod.run(tool, ["-t", "nat", "-I", "OUTPUT", ...jump, "-j", "PROXY_INIT_OUTPUT"]);
    }
    expect(await call("DEL", conf)).toMatchObject({ exitCode: 0, stdout: "" });
    expect(ownLines(save(place))).toStrictEqual([]);
  });
});
