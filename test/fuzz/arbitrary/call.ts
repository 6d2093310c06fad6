// Calls as no runtime should make them: a good one, with some of it replaced by what nobody expects.
import { join } from "node:path";
import fc from "fast-check";
import { configKeys, configPrefix } from "../../../src/mesh/linkerd/names.ts";
import { changes, goodLinkerd, linkerdKeys, sluiceKeys } from "./conf.ts";
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

const topKeys = [
  "cniVersion",
  "name",
  "prevResult",
  "log_level",
  "kubernetes",
  "runtimeConfig",
] as const;

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

/** What Node, its libraries and the C library act on, with values that would end or change a program, or write files. */
const others: readonly (readonly [name: string, value: string])[] = [
  ["NODE_OPTIONS", "--require=DIRECTORY/none"],
  ["NODE_OPTIONS", "--inspect-brk=127.0.0.1:0"],
  ["NODE_CHANNEL_FD", "x"],
  ["NODE_REPL_EXTERNAL_MODULE", "DIRECTORY/none"],
  ["NODE_USE_SYSTEM_CA", "1"],
  ["NODE_EXTRA_CA_CERTS", "DIRECTORY/none"],
  ["NODE_TLS_REJECT_UNAUTHORIZED", "0"],
  ["NODE_DEBUG", "net,tls,fs,module"],
  ["NODE_DEBUG_NATIVE", "diagnostics"],
  ["NODE_COMPILE_CACHE", "DIRECTORY/cache"],
  ["NODE_V8_COVERAGE", "DIRECTORY/coverage"],
  ["NODE_REDIRECT_WARNINGS", "DIRECTORY/warnings"],
  ["NODE_PENDING_DEPRECATION", "1"],
  ["NODE_ICU_DATA", "DIRECTORY/none"],
  ["SSL_CERT_FILE", "DIRECTORY/none"],
  ["OPENSSL_CONF", "DIRECTORY/none"],
  ["UV_THREADPOOL_SIZE", "0"],
  ["LANG", "/proc/self/ns/mnt"],
  ["LC_ALL", "a".repeat(200)],
  ["TZ", "\u0668"],
  ["TMPDIR", "/none"],
  ["IPTABLES_LIB_DIR", "/none"],
  ["XTABLES_LIBDIR", "/none"],
  ["XTABLES_LOCKFILE", "DIRECTORY/lock"],
];

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
    .record({
      verb: fc.constantFrom(...verbs),
      args,
      spoilt,
      foreign: fc.subarray([...others], { maxLength: 2 }),
    })
    .map(({ verb, args: cniArgs, spoilt: replaced, foreign }) => ({
      ...Object.fromEntries(foreign),
      CNI_COMMAND: verb,
      CNI_CONTAINERID: "c1",
      CNI_NETNS: netns,
      CNI_IFNAME: "eth0",
      CNI_PATH: "/opt/cni/bin",
      PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
      CNI_ARGS: cniArgs,
      ...replaced,
    }));
  return fc.record({ env, stdin: stdinIn(dir) });
}
