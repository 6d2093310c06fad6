// A record as ADD writes it, for the tests that only need some record; and the intent of one, as Linkerd's profile meant it.
import * as z from "zod/mini";
import { type AttachmentRecord, familiesIn } from "../../src/attachment/record.ts";
import { type Intent, intentSchema } from "../../src/mesh/linkerd/intent.ts";
import { buildRulesets } from "../../src/mesh/linkerd/ruleset.ts";
import { type Family, families } from "../../src/netfilter/table.ts";
import { leastIntent } from "../lab/case.ts";
import type { World } from "./world.ts";

export const someRecord: AttachmentRecord = {
  format: 2,
  state: "applied",
  network: "net",
  containerId: "c0ffee",
  ifName: "eth0",
  pod: { namespace: "emoji", name: "web" },
  netns: { path: "/run/netns/a", device: 4, inode: 4_026_532_201 },
  profile: "linkerd",
  intent: leastIntent,
  rulesets: buildRulesets(leastIntent, families),
  settings: [],
  backend: "nft",
  backendReason: "named",
  tools: [],
  warnings: [],
  time: "2026-11-30T02:40:56.000Z",
  version: "0.1.0",
};

/** The intent that the record of the pod's attachment keeps; undefined where it has no record. */
export function intentOf(world: World): Intent | undefined {
  const record = world.store.records.get("net,c0ffee,eth0.json");
  return record && intentIn(record);
}

/** The families that the record of the pod's attachment has rules for; undefined where it has no record. */
export function redirectedIn(world: World): Family[] | undefined {
  const record = world.store.records.get("net,c0ffee,eth0.json");
  return record && familiesIn(record);
}

/** The intent that a record keeps. */
export function intentIn({ intent }: AttachmentRecord): Intent {
  return z.parse(intentSchema, intent);
}
