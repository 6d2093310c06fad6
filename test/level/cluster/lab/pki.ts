// The cluster's certificates, keys and tokens, as files; nothing of them is ever trusted elsewhere.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";

/** The node's address, at which the API server is reached. */
export const nodeIp = "10.200.0.1";
/** What the Services' addresses are taken from; the first is the API server's. */
export const serviceRange = "10.96.0.0/16";
const apiServiceIp = "10.96.0.1";

export const apiServerUrl: string = `https://${nodeIp}:6443`;

/** Users of the API and their groups. Each one's token is his name. */
const users = {
  admin: "system:masters",
  "system:node:lab": "system:nodes",
  "system:kube-controller-manager": "",
  "system:kube-scheduler": "",
  "system:kube-proxy": "",
} as const;

export type User = keyof typeof users;

export type Pki = {
  /** A file of the directory. */
  readonly file: (name: string) => string;
  /** A kubeconfig for a user. */
  readonly kubeconfig: (user: User) => string;
};

/** Makes all of them. */
export async function makePki(dir: string): Promise<Pki> {
  mkdirSync(dir);
  const file = (name: string) => join(dir, name);
  await makeCertificate(file, "ca", ["/CN=lab-ca"]);
  const names = [`IP:127.0.0.1`, `IP:${nodeIp}`, `IP:${apiServiceIp}`];
  await Promise.all([
    makeCertificate(file, "api", ["/CN=kube-apiserver", `subjectAltName=${names.join(",")}`]),
    makeCertificate(file, "kubelet-client", ["/O=system:masters/CN=apiserver-kubelet-client"]),
    makeServiceAccountKey(file),
  ]);
  const lines = Object.entries(users).map(([user, group], i) => `${user},${user},${i},${group}\n`);
  writeFileSync(file("tokens.csv"), lines.join(""));
  return {
    file,
    kubeconfig: (user) => {
      const path = file(`${user}.kubeconfig`);
      writeFileSync(path, JSON.stringify(kubeconfigFor(user, file("ca.crt"))), { mode: 0o600 });
      return path;
    },
  };
}

/** A kubeconfig for the bearer of a token. */
export function kubeconfigFor(token: string, caFile: string): object {
  const cluster = { server: apiServerUrl, "certificate-authority": caFile };
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "lab", cluster }],
    users: [{ name: "user", user: { token } }],
    contexts: [{ name: "lab", context: { cluster: "lab", user: "user" } }],
    "current-context": "lab",
  };
}

type File = Pki["file"];

async function makeCertificate(
  file: File,
  name: string,
  [subject = "", ...extensions]: readonly string[],
): Promise<void> {
  const signer = ["-CA", file("ca.crt"), "-CAkey", file("ca.key")];
  await execa("openssl", [
    ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
    ...[
      "-subj",
      subject,
      "-days",
      "2",
      "-out",
      file(`${name}.crt`),
      "-keyout",
      file(`${name}.key`),
    ],
    ...(name === "ca" ? [] : [...signer, "-addext", "basicConstraints=critical,CA:FALSE"]),
    ...extensions.flatMap((extension) => ["-addext", extension]),
  ]);
}

async function makeServiceAccountKey(file: File): Promise<void> {
  await execa("openssl", ["genrsa", "-out", file("sa.key"), "2048"]);
  await execa("openssl", ["rsa", "-in", file("sa.key"), "-pubout", "-out", file("sa.pub")]);
}
