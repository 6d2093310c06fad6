// After an upgrade: attachments whose records an earlier version wrote are checked, cleaned and forgotten as before.
import { readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { type Backend, type Family, families } from "../../../src/netfilter/table.ts";
import { linkerd, loadState, ownLines, save } from "../../lab/states.ts";
import { type Attachment, addressOf, confOf, test } from "./level.ts";

const setting = "net.netfilter.nf_conntrack_tcp_timeout_close_wait";

type Row = {
  readonly name: string;
  readonly backend: Backend;
  readonly of: readonly Family[];
  readonly wish?: object;
};

/** The fixtures, and the pod that each is of. */
const rows: readonly Row[] = [
  { name: "ipv4", backend: "nft", of: ["ipv4"] },
  { name: "both-families", backend: "legacy", of: families },
  { name: "close-wait", backend: "nft", of: families, wish: { "close-wait-timeout": "90s" } },
  { name: "intended", backend: "nft", of: families },
  { name: "of-0.1.0", backend: "nft", of: families },
];

const path = `/proc/sys/${setting.replaceAll(".", "/")}`;

/** Redirects the pod, and puts a record of format 1 about its netns in the place of ADD's own. */
function add({ netns, stateDir, call, record }: Attachment, row: Row) {
  const conf = confOf({
    linkerd: { ...linkerd, "iptables-mode": row.backend, ...row.wish },
    addresses: row.of.map((family) => addressOf[family]),
  });
  const before = netns.run("cat", [path]).trim();
  expect(call("ADD", conf)).toMatchObject({ exitCode: 0 });
  const { netns: place, boot } = record() ?? {};
  const fixture = join(import.meta.dirname, "../../fixture/record-1", `${row.name}.json`);
  const old: Record<string, unknown> = JSON.parse(readFileSync(fixture, "utf8"));
  const isBootKnown = old["boot"] !== undefined;
  const text = JSON.stringify({ ...old, netns: place, ...(isBootKnown ? { boot } : {}) });
  const file = join(stateDir, "attachments/lab,c1,eth0.json");
  writeFileSync(file, text, { mode: 0o600 });
  // What was written just now may be of an ADD beside a GC.
  utimesSync(file, 1, 1);
  return { conf, before };
}

test.for(rows.map((row) => [row.name, row] as const))(
  "CHECK, DEL and GC go by a record of format 1: %s",
  ([, row], { attachment }) => {
    const { netns, call } = attachment;
    const places = row.of.map((family) => ({ netns, backend: row.backend, family }));
    const { conf, before } = add(attachment, row);

    expect(call("CHECK", conf)).toMatchObject({ exitCode: 0, stdout: "" });

    for (const place of places) loadState(place, "the outbound jump missing");
    if (row.wish !== undefined) netns.run("sysctl", ["-qw", `${setting}=61`]);
    const { code, details } = JSON.parse(call("CHECK", conf).stdout);
    expect([code, String(details).split("\n").length]).toStrictEqual([
      100,
      row.of.length + (row.wish === undefined ? 0 : 1),
    ]);

    expect(call("DEL", conf)).toMatchObject({ exitCode: 0, stdout: "" });
    expect(places.map((place) => ownLines(save(place)))).toStrictEqual(places.map(() => []));
    expect(netns.run("cat", [path]).trim()).toBe(row.wish === undefined ? before : "60");
    expect(attachment.records()).toStrictEqual([]);

    add(attachment, row);
    expect(call("ADD", conf)).toMatchObject({ exitCode: 0 });
    expect(attachment.record()).toMatchObject({ format: 2, state: "applied" });
    add(attachment, row);
    expect(call("GC", { ...conf, "cni.dev/valid-attachments": [] })).toMatchObject({ exitCode: 0 });
    expect(attachment.records()).toStrictEqual([]);
  },
);
