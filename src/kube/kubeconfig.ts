// Reads a kubeconfig: where the API server is, how it is recognised, and who we are to it. Edge (files). Loaded only when
// the API is asked.
import { statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { CORE_SCHEMA, load, YAMLException } from "js-yaml";
import * as z from "zod/mini";
import { expectationOf } from "../cni/schema-issue.ts";
import { readSmallFile, UnreadableError } from "./file.ts";
import { serverOf } from "./server.ts";

/** What a connection needs. */
export type KubeAccess = {
  readonly server: string;
  /** Name that the server's certificate must bear, where it is not the host's. */
  readonly serverName: string | undefined;
  readonly ca: string | undefined;
  readonly token: string | undefined;
  readonly clientCertificate: { readonly cert: string; readonly key: string } | undefined;
  /** The file that the token came from: the kubeconfig itself, or the one that it names. */
  readonly tokenFile: string;
};

/** The kubeconfig cannot be used; the message names the file and the fault, and no value that may be secret. */
export class KubeconfigError extends Error {
  /** It may be that the file is just being written: what is absent or half now may be right in a moment. */
  readonly isPassing: boolean;

  constructor(file: string, problem: string, { isPassing } = { isPassing: false }) {
    super(`kubeconfig ${file}: ${problem}`);
    this.name = "KubeconfigError";
    this.isPassing = isPassing;
  }
}

/** Of what may be right in a moment. */
const passing = { isPassing: true };

const text = z.optional(z.string());
// Without the keys that nobody reads: a list of aliases of one large map would be copied as often as it is named.
const cluster = z.object({
  server: z.string(),
  "tls-server-name": text,
  "certificate-authority": text,
  "certificate-authority-data": text,
  "insecure-skip-tls-verify": z.optional(z.boolean()),
  "proxy-url": z.optional(z.unknown()),
});
const user = z.object({
  token: text,
  tokenFile: text,
  "client-certificate": text,
  "client-certificate-data": text,
  "client-key": text,
  "client-key-data": text,
  exec: z.optional(z.unknown()),
  "auth-provider": z.optional(z.unknown()),
  username: z.optional(z.unknown()),
  password: z.optional(z.unknown()),
  as: z.optional(z.unknown()),
  "as-uid": z.optional(z.unknown()),
  "as-groups": z.optional(z.unknown()),
  "as-user-extra": z.optional(z.unknown()),
});
type User = z.infer<typeof user>;
const context = z.object({ cluster: z.string(), user: z.string() });
const kubeconfigSchema = z.object({
  "current-context": text,
  clusters: z.array(z.object({ name: z.string(), cluster })),
  users: z.array(z.object({ name: z.string(), user })),
  contexts: z.array(z.object({ name: z.string(), context })),
});

/** The context that linkerd-cni insists on, for a kubeconfig that names no current one. */
const linkerdContext = "linkerd-cni-context";

const noPlugins = "exec and auth-provider are not run; give a token instead";
const noOther = "is not honoured; give a token of that user instead";

/** What asks for another way to connect, or to be somebody else: passed over, it would be another access than was meant. */
const refused: readonly [part: keyof Parts, key: string, problem: string][] = [
  [
    "cluster",
    "insecure-skip-tls-verify",
    "insecure-skip-tls-verify is not honoured; give the CA instead",
  ],
  ["cluster", "proxy-url", "proxy-url is not honoured; the API server must be reached without it"],
  ["user", "exec", noPlugins],
  ["user", "auth-provider", noPlugins],
  ...["username", "password", "as", "as-uid", "as-groups", "as-user-extra"].map(
    (key): (typeof refused)[number] => ["user", key, `${key} ${noOther}`],
  ),
];

/**
 * Loads the access that the kubeconfig's current context describes.
 * @throws KubeconfigError when it cannot be read, or asks for what is not done here (plug-ins, proxies, no TLS check).
 */
export function loadKubeconfig(file: string): KubeAccess {
  const conf = readKubeconfig(file);
  const wanted = conf["current-context"] || linkerdContext;
  const found = byName(file, "context", { list: conf.contexts, name: wanted }).context;
  const server = byName(file, "cluster", { list: conf.clusters, name: found.cluster }).cluster;
  const self = byName(file, "user", { list: conf.users, name: found.user }).user;
  requireHonoured(file, { cluster: server, user: self });
  const read = reader(file);
  return {
    server: readServer(file, server.server),
    serverName: server["tls-server-name"] || undefined,
    ca: read(server["certificate-authority-data"], server["certificate-authority"]),
    ...tokenOf(file, self, read),
    clientCertificate: clientCertificate(file, self, read),
  };
}

type Parts = Readonly<Record<"cluster" | "user", object>>;

function requireHonoured(file: string, parts: Parts): void {
  for (const [part, key, problem] of refused) {
    const value = Object.entries(parts[part]).find(([name]) => name === key)?.[1];
    if (isSet(value)) throw new KubeconfigError(file, problem);
  }
}

// As kubectl writes out what is not set.
function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "" && value !== false;
}

function readServer(file: string, given: string): string {
  try {
    return serverOf(given);
  } catch (error) {
    if (error instanceof RangeError) throw new KubeconfigError(file, error.message);
    throw error;
  }
}

// Of both, the file: it is what is renewed.
function tokenOf(file: string, self: User, read: Read): Pick<KubeAccess, "token" | "tokenFile"> {
  const tokenFile = self.tokenFile ? resolve(dirname(file), self.tokenFile) : file;
  const token = (read(undefined, self.tokenFile) ?? (self.token || undefined))?.trim();
  if (token === undefined || isToken(token)) return { token, tokenFile };
  throw new KubeconfigError(file, `the token of ${tokenFile} is empty, or none`, passing);
}

/** A header of a request; no server takes a longer one. */
const longestToken = 64 * 1024;

function isToken(text: string): boolean {
  return text.length <= longestToken && /^[\x21-\x7e]+$/.test(text);
}

/** How old a file is, in seconds; undefined when it is not there. */
export function fileAgeSeconds(file: string): number | undefined {
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  return Math.max(0, Math.round((Date.now() - stats.mtimeMs) / 1_000));
}

function readKubeconfig(file: string): z.infer<typeof kubeconfigSchema> {
  const content = readText(file, file);
  const result = z.safeParse(kubeconfigSchema, parseDocument(file, content));
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const at = issue?.path.join(".") ?? "";
  const fault = issue === undefined || at === "" ? undefined : `${at}: ${expectationOf(issue)}`;
  throw new KubeconfigError(file, fault ?? "it is not a kubeconfig", passing);
}

// Without the parser's own words: they quote the lines around a fault, and there is the token. JSON's kinds of values only:
// to merge maps (`<<`) is work that grows with the square of the text.
function parseDocument(file: string, content: string): unknown {
  try {
    return content.trim() === "" ? undefined : load(content, { schema: CORE_SCHEMA });
  } catch (error) {
    const line = error instanceof YAMLException ? (error.mark?.line ?? 0) + 1 : 1;
    throw new KubeconfigError(file, `it is neither YAML nor JSON (line ${line})`, passing);
  }
}

type Lookup<T> = { readonly list: readonly T[]; readonly name: string };

function byName<T extends { name: string }>(file: string, kind: string, lookup: Lookup<T>): T {
  const found = lookup.list.find(({ name }) => name === lookup.name);
  if (found !== undefined) return found;
  throw new KubeconfigError(file, `it has no ${kind} ${lookup.name.slice(0, 100)}`, passing);
}

type Read = (data: string | undefined, path: string | undefined) => string | undefined;

// Data in the file itself (base64) goes before the path of another, which is relative to the kubeconfig.
function reader(file: string): Read {
  return (data, path) => {
    if (data !== undefined && data !== "") return Buffer.from(data, "base64").toString("utf8");
    return path === undefined || path === ""
      ? undefined
      : readText(resolve(dirname(file), path), file);
  };
}

function clientCertificate(file: string, self: User, read: Read): KubeAccess["clientCertificate"] {
  const cert = read(self["client-certificate-data"], self["client-certificate"]);
  const key = read(self["client-key-data"], self["client-key"]);
  if (cert === undefined && key === undefined) return undefined;
  if (cert !== undefined && key !== undefined) return { cert, key };
  const problem = "client-certificate and client-key are only of use together";
  throw new KubeconfigError(file, problem, passing);
}

function readText(path: string, kubeconfig: string): string {
  try {
    return readSmallFile(path);
  } catch (error) {
    if (!(error instanceof UnreadableError)) throw error;
    throw new KubeconfigError(kubeconfig, `cannot be read: ${error.message}`, error);
  }
}
