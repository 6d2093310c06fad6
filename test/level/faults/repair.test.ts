// Repairs while connections are opened at 1 kHz: none passes the proxy by (the long run: npm run faults).
import { expect, test } from "vitest";
import { backends } from "../../../src/netfilter/table.ts";
import { requireRoot } from "./node.ts";
import { repairUnderTraffic } from "./run/repairs.ts";
import { proxied } from "./run/traffic.ts";

const repairs = 50;

test.for(backends)(
  `no connection passes the proxy by while ADD repairs over %s, ${repairs} times`,
  {
    timeout: 120_000,
  },
  async (backend, { skip }) => {
    requireRoot(skip);

    const { outbound, inbound, ...found } = await repairUnderTraffic({ backend, repairs });

    expect(found).toStrictEqual({ repairs, faults: [] });
    expect(Object.keys(outbound.answers)).toStrictEqual([proxied.outbound]);
    expect(Object.keys(inbound.answers)).toStrictEqual([proxied.inbound]);
    expect(outbound.perSecond).toBeGreaterThan(500);
  },
);
