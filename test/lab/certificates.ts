// A certificate authority for one test run, made by openssl when it is needed: nothing of it is kept or ever trusted.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execaSync } from "execa";

/** A certificate and its private key, as PEM. */
export type KeyPair = { readonly cert: string; readonly key: string };

/** The CA's own certificate, one that it gave to a server on loopback, and one for a client, all as PEM. */
export type Authority = {
  readonly ca: string;
  readonly server: KeyPair;
  readonly client: KeyPair;
};

/** The name that the server's certificate bears besides its addresses. */
export const serverName = "kubernetes.default.svc";

/** Makes a CA, and what it signs. */
export function makeAuthority(): Authority {
  const dir = mkdtempSync(join(tmpdir(), "slc-ca-"));
  try {
    const root = makePair(dir, "slc-ca", ["keyUsage=critical,keyCertSign"]);
    const names = `subjectAltName=IP:127.0.0.1,IP:::1,DNS:${serverName}`;
    return {
      ca: root.cert,
      server: makePair(dir, "slc-server", [...leaf, "extendedKeyUsage=serverAuth", names]),
      client: makePair(dir, "slc-client", [...leaf, "extendedKeyUsage=clientAuth"]),
    };
  } finally {
    rmSync(dir, { recursive: true });
  }
}

const leaf = ["basicConstraints=critical,CA:FALSE"];

// The first is the CA's own; the others find it in the directory.
function makePair(dir: string, name: string, extensions: readonly string[]): KeyPair {
  const [cert, key] = [join(dir, `${name}.crt`), join(dir, `${name}.key`)];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const files = ["-out", cert, "-keyout", key, "-subj", `/CN=${name}`, "-days", "2"];
  const signer = ["-CA", join(dir, "slc-ca.crt"), "-CAkey", join(dir, "slc-ca.key")];
  execaSync("openssl", [
    ...["req", "-x509", ...curve, ...files],
    ...(name === "slc-ca" ? [] : signer),
    ...extensions.flatMap((extension) => ["-addext", extension]),
  ]);
  return { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
}
