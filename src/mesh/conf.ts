// The plugin conf's own keys: linkerd-cni's with their meaning, and ours in `sluice`. One schema is the source of the
// types, of the defaults, and of README's table (a test holds it against this). Values are judged in one place (values.ts).
import * as z from "zod/mini";
import type { JsonObject } from "../cni/conf.ts";
import { CniError, errorCode } from "../cni/error.ts";
import { expectationOf } from "../cni/schema-issue.ts";
import { configKeys } from "./linkerd.ts";

const text = z.string();
const names = z.array(text);
const flag = z._default(z.boolean(), false);
/** Numbers as users write them: 4143 or "4143". */
const number = z.union([z.number(), text]);
const list = z._default(z.array(number), []);
const optionalNumber = z.optional(number);

const linkerdSchema = z.looseObject({
  "incoming-proxy-port": optionalNumber,
  "outgoing-proxy-port": optionalNumber,
  "proxy-uid": optionalNumber,
  "proxy-gid": optionalNumber,
  "ports-to-redirect": list,
  "inbound-ports-to-ignore": list,
  "outbound-ports-to-ignore": list,
  "subnets-to-ignore": z._default(names, []),
  simulate: flag,
  "use-wait-flag": flag,
  "iptables-mode": z._default(z.enum(["auto", "nft", "legacy", "plain", ""]), "auto"),
  ipv6: flag,
});

const sluiceSchema = z.looseObject({
  "pod-source": z.optional(z.enum(["auto", "annotations", "api"])),
  "exclude-namespaces": z._default(names, ["kube-system"]),
  "control-plane-namespace": z._default(text, "linkerd"),
  "api-server-ports": z._default(z.array(number), [443, 6443]),
  "agent-pod": z.optional(z.object({ namespace: text, "name-prefix": text })),
  // Misspelt, it would deny nothing.
  "deny-annotations": z._default(z.record(text, z.array(z.enum(configKeys))), {}),
  "on-invalid-annotation": z._default(z.enum(["reject", "warn"]), "reject"),
  "state-dir": z._default(
    z.string().check(z.regex(/^\//, "expected an absolute path")),
    "/run/sluice",
  ),
  "timeout-seconds": z._default(z.number().check(z.minimum(1), z.maximum(110)), 20),
});

export const confSchema = z.looseObject({
  log_level: z._default(text, "info"),
  log_file: z._default(text, ""),
  linkerd: linkerdSchema,
  kubernetes: z.optional(z.looseObject({ kubeconfig: z._default(text, "") })),
  sluice: z.prefault(sluiceSchema, {}),
});

export type PluginConf = z.infer<typeof confSchema>;
export type LinkerdConf = PluginConf["linkerd"];
export type SluiceConf = PluginConf["sluice"];

/** The second is linkerd-cni's, which declares it and never reads it. */
const kubernetesKeys = ["kubeconfig", "k8s_api_root"];

/** What a conf list's entry may hold besides: the protocol's keys, which are others' to judge. */
const protocolKeys = [
  "cniVersion",
  "cniVersions",
  "name",
  "type",
  "capabilities",
  "runtimeConfig",
  "prevResult",
  "args",
  "ipam",
  "dns",
  "ipMasq",
];

/**
 * Reads our part of the conf.
 * @throws CniError 7, one line a problem, each with the key and the value found.
 */
export function parseConf(document: JsonObject): PluginConf {
  const result = z.safeParse(confSchema, document, { reportInput: true });
  if (result.success) return result.data;
  const problems = result.error.issues.map((issue) => {
    const found = String(JSON.stringify(issue.input));
    return `${issue.path.join(".")}: ${expectationOf(issue)}, found ${found.length > 200 ? `${found.slice(0, 200)}...` : found}`;
  });
  throw invalidConf(problems.join("; "));
}

/** Reads what can be read of the conf, and takes defaults for the rest: DEL must clean up after whatever ADD accepted. */
export function parseConfLeniently(document: JsonObject): PluginConf {
  const attempts = [document, { sluice: document["sluice"], linkerd: {} }];
  const results = attempts.map((attempt) => z.safeParse(confSchema, attempt));
  const good = results.find(({ success }) => success)?.data;
  return good ?? z.parse(confSchema, { linkerd: {} });
}

/** Keys that nobody reads: likely slips of the pen, worth one warning. */
export function unknownKeys(document: JsonObject, conf: PluginConf): string[] {
  const top = Object.keys(document).filter((key) => !key.startsWith("cni.dev/"));
  return [
    ...strangers(top, [...protocolKeys, ...Object.keys(confSchema.shape)], ""),
    ...strangers(Object.keys(conf.linkerd), Object.keys(linkerdSchema.shape), "linkerd."),
    ...strangers(Object.keys(conf.kubernetes ?? {}), kubernetesKeys, "kubernetes."),
    ...strangers(Object.keys(conf.sluice), Object.keys(sluiceSchema.shape), "sluice."),
  ];
}

/** The error for a conf that cannot be meant; `problem` names the key and the value. */
export function invalidConf(problem: string): CniError {
  return new CniError(errorCode.invalidConf, `invalid conf: ${problem}`);
}

function strangers(found: readonly string[], known: readonly string[], prefix: string): string[] {
  return found.filter((key) => !known.includes(key)).map((key) => prefix + key);
}
