// Reads a kubeconfig: where the API server is, how it is recognised, and who we are to it. Edge (files). Loaded only when
// the API is asked.
import { readFileSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { load, YAMLException } from "js-yaml";
import * as z from "zod/mini";
import { expectationOf } from "../cni/schema-issue.ts";

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

/** The kubeconfig cannot be used; the message names the file and the fault. */
export class KubeconfigError extends Error {
  constructor(file: string, problem: string, cause?: unknown) {
    super(`kubeconfig ${file}: ${problem}`, { cause });
    this.name = "KubeconfigError";
  }
}

const text = z.optional(z.string());
const cluster = z.looseObject({
  server: z.string(),
  "tls-server-name": text,
  "certificate-authority": text,
  "certificate-authority-data": text,
  "insecure-skip-tls-verify": z.optional(z.boolean()),
});
const user = z.looseObject({
  token: text,
  tokenFile: text,
  "client-certificate": text,
  "client-certificate-data": text,
  "client-key": text,
  "client-key-data": text,
  exec: z.optional(z.unknown()),
  "auth-provider": z.optional(z.unknown()),
});
type User = z.infer<typeof user>;
const context = z.looseObject({ cluster: z.string(), user: z.string() });
const kubeconfigSchema = z.looseObject({
  "current-context": text,
  clusters: z.array(z.looseObject({ name: z.string(), cluster })),
  users: z.array(z.looseObject({ name: z.string(), user })),
  contexts: z.array(z.looseObject({ name: z.string(), context })),
});

/** The context that linkerd-cni insists on, for a kubeconfig that names no current one. */
const linkerdContext = "linkerd-cni-context";

/**
 * Loads the access that the kubeconfig's current context describes.
 * @throws KubeconfigError when it cannot be read, or asks for what is not done here (plug-ins, no TLS check).
 */
export function loadKubeconfig(file: string): KubeAccess {
  const conf = readKubeconfig(file);
  const wanted = conf["current-context"] || linkerdContext;
  const found = byName(file, "context", { list: conf.contexts, name: wanted }).context;
  const server = byName(file, "cluster", { list: conf.clusters, name: found.cluster }).cluster;
  const self = byName(file, "user", { list: conf.users, name: found.user }).user;
  if (server["insecure-skip-tls-verify"] === true) {
    throw new KubeconfigError(
      file,
      "insecure-skip-tls-verify is not honoured; give the CA instead",
    );
  }
  const read = reader(file);
  return {
    server: serverOf(file, server.server),
    serverName: server["tls-server-name"] || undefined,
    ca: read(server["certificate-authority-data"], server["certificate-authority"]),
    ...tokenOf(file, self, read),
    clientCertificate: clientCertificate(file, self, read),
  };
}

// Older installers of linkerd-cni put brackets around IPv4 addresses too.
function serverOf(file: string, given: string): string {
  const server = given.replace(/^(https:\/\/)\[([0-9.]+)\]/, "$1$2").replace(/\/+$/, "");
  if (URL.canParse(server) && server.startsWith("https://")) return server;
  const hint = "it must be https://host:port, with [brackets] around an IPv6 address";
  throw new KubeconfigError(file, `server ${JSON.stringify(given)}: ${hint}`);
}

// Of both, the file: it is what is renewed.
function tokenOf(file: string, self: User, read: Read): Pick<KubeAccess, "token" | "tokenFile"> {
  if (self.exec !== undefined || self["auth-provider"] !== undefined) {
    throw new KubeconfigError(file, "exec and auth-provider are not run; give a token instead");
  }
  const tokenFile = self.tokenFile ? resolve(dirname(file), self.tokenFile) : file;
  const token = (read(undefined, self.tokenFile) ?? (self.token || undefined))?.trim();
  if (token === undefined || /^[\x21-\x7e]+$/.test(token)) return { token, tokenFile };
  throw new KubeconfigError(file, `the token of ${tokenFile} is empty, or none`);
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
  throw new KubeconfigError(
    file,
    at === "" || issue === undefined ? "it is not a kubeconfig" : `${at}: ${expectationOf(issue)}`,
  );
}

// Without the parser's own words: they quote the lines around a fault, and there is the token.
function parseDocument(file: string, content: string): unknown {
  try {
    return content.trim() === "" ? undefined : load(content);
  } catch (error) {
    const line = error instanceof YAMLException ? (error.mark?.line ?? 0) + 1 : 1;
    throw new KubeconfigError(file, `it is neither YAML nor JSON (line ${line})`);
  }
}

type Lookup<T> = { readonly list: readonly T[]; readonly name: string };

function byName<T extends { name: string }>(file: string, kind: string, lookup: Lookup<T>): T {
  const found = lookup.list.find(({ name }) => name === lookup.name);
  if (found === undefined) throw new KubeconfigError(file, `it has no ${kind} ${lookup.name}`);
  return found;
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
  throw new KubeconfigError(file, "client-certificate and client-key are only of use together");
}

function readText(path: string, kubeconfig: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : String(cause);
    throw new KubeconfigError(kubeconfig, `cannot be read: ${problem}`, cause);
  }
}
