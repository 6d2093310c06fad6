// The plugin conf's own keys: linkerd-cni's with their meaning, and ours in `sluice`. One schema is the source of the
// types, of the defaults, and of README's table (a test holds it against this). Values are judged in one place (mesh/linkerd/values.ts).
import * as z from "zod/mini";
import { isJsonObject, type JsonObject } from "../cni/conf.ts";
import { CniError, errorCode } from "../cni/error.ts";
import { expectationOf } from "../cni/schema-issue.ts";
import { configKeys } from "../mesh/linkerd/names.ts";
import { readInteger } from "../redirect/integer.ts";
import { few } from "../text/telling.ts";

const text = z.string();
const names = z.array(text);
const flag = z._default(z.boolean(), false);
/** Numbers as users write them: 4143 or "4143". */
const number = z.union([z.number(), text]);
const list = z._default(z.array(number), []);
const optionalNumber = z.optional(number);
/** A number that is used as it is; what is none is left for the check of the bounds to refuse. */
const wholeNumber = z.pipe(
  number,
  z.transform((word) => readInteger(word, { least: 0, most: Number.MAX_SAFE_INTEGER }) ?? word),
);

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
  "close-wait-timeout": optionalNumber,
});

const sluiceSchema = z.looseObject({
  "pod-source": z.optional(z.enum(["auto", "annotations", "api"])),
  // No default: a list that is written counts for more than the usual one (upkeep/pod/facts.ts).
  "exclude-namespaces": z.optional(names),
  "control-plane-namespace": z._default(z.union([text, names]), "linkerd"),
  "api-server-ports": z._default(z.array(number), [443, 6443]),
  "agent-pod": z.optional(z.object({ namespace: text, "name-prefix": text })),
  // Misspelt, it would deny nothing.
  "deny-annotations": z._default(z.record(text, z.array(z.enum(configKeys))), {}),
  "on-invalid-annotation": z._default(z.enum(["reject", "warn", "drop-entries"]), "reject"),
  "state-dir": z._default(
    text.check(z.refine(isAbsolutePath, "expected an absolute path")),
    "/run/sluice",
  ),
  "timeout-seconds": z.prefault(
    z.pipe(wholeNumber, z.int().check(z.minimum(1), z.maximum(110))),
    20,
  ),
});

// As the kernel takes them: with no NUL in it, and of at most 4,095 bytes.
function isAbsolutePath(path: string): boolean {
  return path.startsWith("/") && !path.includes("\0") && path.length < 4_096;
}

export const confSchema = z.looseObject({
  log_level: z._default(text, "info"),
  log_file: z._default(text.check(z.regex(/^(?:\/|$)/, "expected an absolute path")), ""),
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

/** Our part of a conf, and what is wrong with it: one sentence a key, with the value found. */
export type ReadConf = { readonly conf: PluginConf; readonly problems: readonly string[] };

/**
 * Reads our part of the conf, each key for itself: where one cannot be read its default stands, and the problem is told.
 * So DEL finds its records, and pods without a proxy start, whatever else is wrong. `null` is not set, everywhere.
 */
export function readConf(document: JsonObject): ReadConf {
  const given = ourPart(document);
  const result = z.safeParse(confSchema, given, { reportInput: true });
  if (result.success) return { conf: result.data, problems: [] };
  const { issues } = result.error;
  const { conf } = readConf(issues.reduce(withoutWrong, given));
  return { conf, problems: issues.map(problemOf) };
}

/**
 * Reads our part of the conf, all or nothing.
 * @throws CniError 7 with all problems.
 */
export function parseConf(document: JsonObject): PluginConf {
  const { conf, problems } = readConf(document);
  if (problems.length > 0) throw invalidConf(few(problems));
  return conf;
}

// As deep as our keys go.
function ourPart(document: JsonObject): JsonObject {
  const sections = Object.entries(document).map(([key, value]) => [key, withoutNull(value, 3)]);
  return Object.fromEntries(sections.filter(([, value]) => value !== null));
}

function withoutNull(value: unknown, depth: number): unknown {
  if (depth === 0) return value;
  if (Array.isArray(value)) return value.filter((entry) => entry !== null);
  if (!isJsonObject(value)) return value;
  const set = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(set.map(([key, member]) => [key, withoutNull(member, depth - 1)]));
}

type Issue = z.core.$ZodIssue;

function problemOf(issue: Issue): string {
  const found = String(JSON.stringify(issue.input));
  return `${issue.path.join(".")}: ${expectationOf(issue)}, found ${found.length > 200 ? `${found.slice(0, 200)}...` : found}`;
}

/** What stands for a section that is no object: the one is required, the other says by being there that pods are asked for. */
const sectionsInstead: JsonObject = { linkerd: {}, kubernetes: {} };

function withoutWrong(document: JsonObject, { path }: Issue): JsonObject {
  const [section, key] = path.map(String);
  if (section === undefined) return {};
  const { [section]: value, ...others } = document;
  if (key !== undefined && isJsonObject(value)) {
    const { [key]: _, ...members } = value;
    return { ...others, [section]: members };
  }
  const instead = sectionsInstead[section];
  return instead === undefined ? others : { ...others, [section]: instead };
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
