// Calls as no runtime should make them: a good one, with some of it replaced by what nobody expects.
import { join } from "node:path";
import fc from "fast-check";
import { configKeys, configPrefix } from "../../../src/mesh/linkerd.ts";
import { anyText } from "./text.ts";

/** One call: its whole environment, and stdin. */
export type AnyCall = {
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: string | Uint8Array;
};

/** What must be in no output. The first looks like a service account's, the second like nothing special. */
export const secrets = [
  "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzbHVpY2UifQ.c2xjLXNpZ25hdHVyZQ",
  "slc-marker-7f3a.0123456789abcdef",
] as const;

/** A kubeconfig that leads to a server that is not there. */
export const kubeconfig: string = JSON.stringify({
  "current-context": "c",
  clusters: [{ name: "c", cluster: { server: "https://127.0.0.1:1" } }],
  users: [{ name: "u", user: { token: secrets[0] } }],
  contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
});

const verbs = ["ADD", "ADD", "ADD", "CHECK", "DEL", "STATUS", "GC", "VERSION", "constructor", ""];

/** Values where JSON is written, of every kind. */
const anyValue: fc.Arbitrary<unknown> = fc.oneof(
  anyText,
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    0,
    -1,
    1.5,
    1e21,
    65_536,
    "00",
    " 25",
    "25,",
    [],
    {},
    [[]],
  ),
  fc.array(anyText, { maxLength: 3 }),
  fc.jsonValue({ maxDepth: 2 }),
);

const linkerdKeys = [
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

const sluiceKeys = [
  "pod-source",
  "exclude-namespaces",
  "control-plane-namespace",
  "api-server-ports",
  "agent-pod",
  "deny-annotations",
  "on-invalid-annotation",
] as const;

const topKeys = [
  "cniVersion",
  "name",
  "prevResult",
  "log_level",
  "kubernetes",
  "runtimeConfig",
] as const;

const changes = (keys: readonly string[], most: number) =>
  fc.dictionary(fc.constantFrom(...keys), anyValue, { maxKeys: most });

const annotations = fc.option(
  fc.dictionary(
    fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(...configKeys.map((key) => configPrefix + key)) },
      { weight: 1, arbitrary: anyText },
    ),
    anyText,
    { maxKeys: 3 },
  ),
  { nil: undefined },
);

/** A conf that is good but for a few values; state and log are in the directory. */
function confIn(dir: string): fc.Arbitrary<object> {
  return fc
    .record({
      linkerd: changes(linkerdKeys, 2),
      sluice: changes(sluiceKeys, 1),
      top: fc.oneof({ weight: 3, arbitrary: fc.constant({}) }, changes(topKeys, 2)),
      annotations,
      asksApi: fc.boolean(),
      addresses: fc.subarray(["10.9.0.2/24", "fd00:9::2/64"]),
    })
    .map((parts) => ({
      ...goodConf,
      linkerd: { ...goodLinkerd, ...parts.linkerd },
      sluice: { "state-dir": join(dir, "state"), "timeout-seconds": 2, ...parts.sluice },
      log_file: join(dir, "log"),
      policy: { type: "k8s", k8s_auth_token: secrets[1] },
      prevResult: { cniVersion: "1.1.0", ips: parts.addresses.map((address) => ({ address })) },
      ...(parts.annotations === undefined ? {} : annotated(parts.annotations)),
      ...(parts.asksApi ? { kubernetes: { kubeconfig: join(dir, "etc/kubeconfig") } } : {}),
      ...parts.top,
    }));
}

const goodConf = { cniVersion: "1.1.0", name: "lab", type: "sluice", log_level: "debug" } as const;

const goodLinkerd = {
  "incoming-proxy-port": 4143,
  "outgoing-proxy-port": 4140,
  "proxy-uid": 2102,
  ipv6: true,
} as const;

function annotated(found: Readonly<Record<string, string>>): object {
  const key = "io.kubernetes.cri.pod-annotations";
  return { runtimeConfig: { [key]: { "linkerd.io/proxy-version": "edge", ...found } } };
}

// Mostly the conf itself; else cut short, with something in it that does not belong there, or no conf at all.
function stdinIn(dir: string): fc.Arbitrary<AnyCall["stdin"]> {
  const conf = confIn(dir).map((value) => JSON.stringify(value));
  const spoilt = fc.tuple(conf, fc.nat(2_000), anyText).chain(([text, at, put]) => {
    const head = text.slice(0, at % text.length);
    return fc.constantFrom(head, `${head}${put}${text.slice(head.length)}`);
  });
  return fc.oneof(
    { weight: 8, arbitrary: conf },
    { weight: 2, arbitrary: spoilt },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }) },
  );
}

// An environment holds no NUL, and has bytes where we have halves of characters.
const anyVariable = anyText.map((text) => text.replaceAll(/\0|\p{Surrogate}/gu, ""));

const args = fc.oneof(
  fc.constant("K8S_POD_NAMESPACE=emoji;K8S_POD_NAME=web"),
  anyVariable.map((text) => `K8S_POD_NAMESPACE=${text};K8S_POD_NAME=${text}`),
  anyVariable,
);

/** Calls on a node with this directory, about this netns. */
export function anyCall(dir: string, netns: string): fc.Arbitrary<AnyCall> {
  const spoilt = fc.dictionary(
    fc.constantFrom(
      "CNI_CONTAINERID",
      "CNI_NETNS",
      "CNI_IFNAME",
      "CNI_PATH",
      "PATH",
      "HOME",
      "TMPDIR",
      "TZ",
    ),
    fc.oneof(
      anyVariable,
      fc.constantFrom("", "/", ".", dir, `${dir}/none`, "/proc/self/ns/net", "/proc/self/ns/mnt"),
    ),
    { maxKeys: 1 },
  );
  const env = fc
    .record({ verb: fc.constantFrom(...verbs), args, spoilt })
    .map(({ verb, args: cniArgs, spoilt: others }) => ({
      CNI_COMMAND: verb,
      CNI_CONTAINERID: "c1",
      CNI_NETNS: netns,
      CNI_IFNAME: "eth0",
      CNI_PATH: "/opt/cni/bin",
      PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
      CNI_ARGS: cniArgs,
      ...others,
    }));
  return fc.record({ env, stdin: stdinIn(dir) });
}
