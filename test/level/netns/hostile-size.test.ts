// A pod that may write rules in its own netns, and writes many: what we do ends in time, what we say stays short, and
// nothing of ours stays behind in silence.
import { describe, expect } from "vitest";
import { backends } from "../../../src/netfilter/table.ts";
import type { CniAnswer } from "../../lab/plugin.ts";
import { outboundJump, ownLines, restore, save } from "../../lab/states.ts";
import { stateConf, test } from "./level.ts";

const longestLine = 8_192;
const timeout = 300_000;

describe.for(backends.map((backend) => ({ backend })))("over $backend", ({ backend }) => {
  const conf = stateConf(backend, "ipv4");
  const nat = (...lines: readonly string[]) => ["*nat", ...lines, "COMMIT", ""].join("\n");

  test("chains that fan out are gone through once", { timeout }, ({ attachment }) => {
    const { netns, call } = attachment;
    expect(call("ADD", conf)).toMatchObject({ exitCode: 0 });
    // Fifteen is as deep as nft lets chains be.
    const names = Array.from({ length: 14 }, (_, i) => `C${i}`);
    const jumps = names.slice(0, -1).flatMap((name, i) => {
      return Array.from({ length: 3 }, () => `-A ${name} -p tcp -j C${i + 1}`);
    });
    const chains = names.map((name) => `:${name} - [0:0]`);
    const place = { netns, backend, family: "ipv4" } as const;
    restore(place, nat(...chains, ...jumps, "-I OUTPUT -j C0"), "--noflush");

    expect(call("CHECK", conf)).toMatchObject({ exitCode: 0 });
    expect(call("ADD", conf)).toMatchObject({ exitCode: 0 });
    netns.run(`iptables-${backend}`, ["-t", "nat", "-A", "C13", "-j", "ACCEPT"]);
    expect(detailsOf(call("CHECK", conf))).toStrictEqual([
      `shadowed-jump (ipv4 nat OUTPUT): expected ${outboundJump}; found -A OUTPUT -j C0`,
    ]);
    expect(call("ADD", conf)).toMatchObject({ exitCode: 0 });
    expect(call("CHECK", conf)).toMatchObject({ exitCode: 0 });
  });

  test("thousands of extra rules are told in a few lines", { timeout }, ({ attachment }) => {
    const { netns, call } = attachment;
    expect(call("ADD", conf)).toMatchObject({ exitCode: 0 });
    const extra = Array.from({ length: 20_000 }, (_, i) => {
      return `-A PROXY_INIT_OUTPUT -p tcp -m tcp --dport ${i + 1} -m comment --comment "${"x".repeat(200)}" -j RETURN`;
    });
    restore({ netns, backend, family: "ipv4" }, nat(...extra), "--noflush");

    const answer = call("CHECK", conf);
    const details = detailsOf(answer);
    expect(JSON.parse(answer.stdout)).toMatchObject({
      code: 100,
      msg: `container c1 is not redirected as intended: 20000 drifts (${backend})`,
    });
    expect(details.at(-1)).toBe(`and ${20_000 - details.length + 1} more`);
    expect(call("ADD", conf)).toMatchObject({ exitCode: 0 });
    expect(call("CHECK", conf)).toMatchObject({ exitCode: 0 });
  });

  test("thousands of foreign redirects in the other backend are told in a few lines", {
    timeout,
  }, ({ attachment }) => {
    const { netns, call } = attachment;
    const other = backends.find((one) => one !== backend) ?? backend;
    const redirects = Array.from({ length: 20_000 }, (_, i) => {
      return `-A OUTPUT -p tcp -m tcp --dport ${i + 1} -j REDIRECT --to-ports 1`;
    });
    restore({ netns, backend: other, family: "ipv4" }, nat(...redirects), "--noflush");

    const added = call("ADD", conf);
    expect(added).toMatchObject({ exitCode: 0 });
    expect(longestOf(added)).toBeLessThan(longestLine);
    expect(added.stderr).toContain('"and 19976 more"');
    expect(detailsOf(call("CHECK", conf)).at(-1)).toMatch(/^and [0-9]+ more$/);
  });

  test("thousands of jumps into our chain are taken out in steps", { timeout }, ({
    attachment,
  }) => {
    const { netns, call } = attachment;
    const place = { netns, backend, family: "ipv4" } as const;
    const jumps = Array.from({ length: 5_000 }, (_, i) => {
      return `-A OUTPUT -p tcp -m tcp --dport ${i + 1} -j PROXY_INIT_OUTPUT`;
    });
    const load = () => {
      restore(place, nat(...jumps), "--noflush");
    };
    expect(call("ADD", conf)).toMatchObject({ exitCode: 0 });
    load();
    expect(detailsOf(call("CHECK", conf)).at(-1)).toMatch(/^and [0-9]+ more$/);
    expect(call("ADD", conf)).toMatchObject({ exitCode: 0 });
    expect(call("CHECK", conf)).toMatchObject({ exitCode: 0 });

    load();
    const deleted = call("DEL", conf);
    expect(deleted).toMatchObject({ exitCode: 0, stdout: "" });
    expect(longestOf(deleted)).toBeLessThan(longestLine);
    expect(ownLines(save(place))).toStrictEqual([]);
    expect(attachment.records()).toStrictEqual([]);
  });

  test("a table whose text is too long is not verified, and not waited for", { timeout }, ({
    attachment,
  }) => {
    const { netns, call } = attachment;
    const place = { netns, backend, family: "ipv4" } as const;
    expect(call("ADD", conf)).toMatchObject({ exitCode: 0 });
    const long = "x".repeat(250);
    const rules = Array.from({ length: 60_000 }, () => {
      return `-A FOREIGN -p udp -m comment --comment ${long} -j RETURN`;
    });
    restore(place, nat(":FOREIGN - [0:0]", ...rules), "--noflush");

    const found =
      /^unverifiable \(ipv4 nat\): found its text is too long to be verified: \d+ characters, at most 16777216$/;
    expect(detailsOf(call("CHECK", conf))[0]).toMatch(found);
    const added = call("ADD", conf);
    expect(JSON.parse(added.stdout)).toMatchObject({ code: 101 });
    expect(added.stdout).toContain("its text is too long to be verified");
    expect(call("DEL", conf)).toMatchObject({ exitCode: 0, stdout: "" });
    expect(netns.run(`iptables-${backend}`, ["-t", "nat", "-S", "OUTPUT"])).toBe(
      "-P OUTPUT ACCEPT",
    );
    expect(attachment.records()).toStrictEqual([]);
  });
});

function detailsOf(answer: CniAnswer): string[] {
  expect(longestOf(answer)).toBeLessThan(longestLine);
  const { details = "" }: { details?: string } = JSON.parse(answer.stdout);
  return details.split("\n");
}

function longestOf({ stdout, stderr }: CniAnswer): number {
  return Math.max(...[stdout, ...stderr.split("\n")].map((line) => line.length));
}
