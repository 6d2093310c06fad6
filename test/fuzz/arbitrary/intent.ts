// Intents, rulesets and records, as ADD may make them of any conf and any annotations.
import fc from "fast-check";
import type { Intent } from "../../../src/mesh/linkerd/intent.ts";
import { type Cidr, mergeCidrs, parseCidr } from "../../../src/redirect/cidr.ts";
import { mergePorts, type PortRange } from "../../../src/redirect/port.ts";

export const port = fc.integer({ min: 1, max: 65_535 });
const id = fc.integer({ min: 1, max: 4_294_967_294 });

export const portRange: fc.Arbitrary<PortRange> = fc
  .tuple(port, fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 3 }), fc.nat(65_535)))
  .map(([from, length]) => ({ from, to: Math.min(65_535, from + length) }));

export const ports: fc.Arbitrary<PortRange[]> = fc
  .array(portRange, { maxLength: 40 })
  .map(mergePorts);

const prefixed = (address: fc.Arbitrary<string>, bits: number) =>
  fc.tuple(address, fc.nat(bits)).map(([text, prefix]) => parseCidr(`${text}/${prefix}`));

export const cidr: fc.Arbitrary<Cidr> = fc.oneof(prefixed(fc.ipV4(), 32), prefixed(fc.ipV6(), 128));

const optional = <T>(key: string, value: fc.Arbitrary<T>) =>
  fc.option(
    value.map((one) => ({ [key]: one })),
    { nil: {} },
  );

export const intent: fc.Arbitrary<Intent> = fc
  .tuple(
    fc.record({
      inboundPort: port,
      outboundPort: port,
      proxyUid: id,
      onlyInbound: fc
        .uniqueArray(port, { maxLength: 20 })
        .map((list) => list.toSorted((a, b) => a - b)),
      excludeInbound: ports,
      excludeOutbound: ports,
      excludeSubnets: fc.array(cidr, { maxLength: 10 }).map(mergeCidrs),
    }),
    optional("proxyGid", id),
    optional("closeWaitSeconds", fc.integer({ min: 1, max: 2_147_483 })),
  )
  .map(([least, gid, closeWait]) => ({ ...least, ...gid, ...closeWait }));
