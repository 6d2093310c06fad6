// The example conf lists, run as they are but for where this node keeps its files.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { root } from "../../../lab/plugin.ts";
import { confFor, injected, linesOf, lookInto, test } from "./level.ts";

/** How many rules and jumps of ours there are in each family. */
const lists: [name: string, ipv4: number, ipv6: number][] = [
  ["every-option.conflist", 10, 10],
  ["minimal.conflist", 7, 0],
];

test.for(lists)("ADD, CHECK and DEL work with %s", async ([name, ...rules], { pod }) => {
  const { plugins } = JSON.parse(readFileSync(join(root, "conf", name), "utf8"));
  const { sluice, kubernetes: _, ...entry } = plugins.at(-1);
  const here = confFor(pod, { sluice, linkerd: entry.linkerd, annotations: injected() });
  const sluiceHere = { ...sluice, "state-dir": here.sluice["state-dir"] };
  const conf = { ...here, ...entry, sluice: sluiceHere, log_file: join(pod.dir, "log") };

  const added = await pod.call("ADD", conf);

  expect([added.exitCode, added.stdout]).toEqual([0, JSON.stringify(here.prevResult)]);
  expect(linesOf(added).map(({ msg }) => msg)).toContain("done");
  const found = lookInto(pod).rules;
  expect([found.ipv4.length, found.ipv6.length]).toEqual(rules);
  expect(await pod.call("CHECK", conf)).toMatchObject({ exitCode: 0, stdout: "" });
  expect(await pod.call("DEL", conf)).toMatchObject({ exitCode: 0, stdout: "" });
  expect(lookInto(pod).rules).toEqual({ ipv4: [], ipv6: [] });
});
