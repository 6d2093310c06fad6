// Confs as JSON values: a good one with some of its values replaced by whatever JSON can hold.
import fc from "fast-check";
import { anyText } from "./text.ts";

/** Values where JSON is written, of every kind; some are almost good. */
export const anyValue: fc.Arbitrary<unknown> = fc.oneof(
  anyText,
  fc.constantFrom<unknown>(
    null,
    true,
    0,
    -1,
    1.5,
    1e21,
    65_536,
    "00",
    "0x10",
    " 25",
    "25,",
    [],
    {},
    [[]],
  ),
  fc.array(anyText, { maxLength: 3 }),
  fc.array(fc.nat(70_000), { maxLength: 3 }),
  fc.jsonValue({ maxDepth: 2 }),
);

/** Some of these keys, with any value. */
export function changes(keys: readonly string[], maxKeys: number): fc.Arbitrary<object> {
  return fc.dictionary(fc.constantFrom(...keys), anyValue, { maxKeys });
}

export const linkerdKeys = [
  "incoming-proxy-port",
  "outgoing-proxy-port",
  "proxy-uid",
  "proxy-gid",
  "ports-to-redirect",
  "inbound-ports-to-ignore",
  "outbound-ports-to-ignore",
  "subnets-to-ignore",
  "simulate",
  "use-wait-flag",
  "iptables-mode",
  "ipv6",
  "close-wait-timeout",
] as const;

export const sluiceKeys = [
  "pod-source",
  "exclude-namespaces",
  "control-plane-namespace",
  "api-server-ports",
  "agent-pod",
  "deny-annotations",
  "on-invalid-annotation",
] as const;

/** The least that a conf's `linkerd` object needs. */
export const goodLinkerd = {
  "incoming-proxy-port": 4143,
  "outgoing-proxy-port": 4140,
  "proxy-uid": 2102,
  ipv6: true,
} as const;

/** Our part of a conf. */
export const anyConf: fc.Arbitrary<Readonly<Record<string, unknown>>> = fc.record({
  linkerd: changes(linkerdKeys, 3).map((changed) => ({ ...goodLinkerd, ...changed })),
  sluice: fc.oneof(changes([...sluiceKeys, "state-dir", "timeout-seconds"], 2), anyValue),
  kubernetes: anyValue,
  log_level: anyValue,
  log_file: anyValue,
});
