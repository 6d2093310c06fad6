// A record as ADD writes it, for the tests that only need some record.
import type { AttachmentRecord } from "../../src/attachment/record.ts";
import { buildRulesets } from "../../src/mesh/linkerd/ruleset.ts";
import { leastIntent } from "../lab/case.ts";

export const someRecord: AttachmentRecord = {
  format: 1,
  network: "net",
  containerId: "c0ffee",
  ifName: "eth0",
  pod: { namespace: "emoji", name: "web" },
  netns: { path: "/run/netns/a", device: 4, inode: 4_026_532_201 },
  intent: leastIntent,
  rulesets: buildRulesets(leastIntent),
  backend: "nft",
  backendReason: "named",
  time: "2026-11-30T02:40:56.000Z",
  version: "0.1.0",
};
