// Kubeconfigs: the forms that are met in the field, and what is wrong with the others, without a word of what is secret.

import { execaSync } from "execa";
import { dump as toYaml } from "js-yaml";
import { describe, expect } from "vitest";
import { fileAgeSeconds, loadKubeconfig } from "../../src/kube/kubeconfig.ts";
import { thrownBy } from "../fake/thrown.ts";
import { base64, kubeconfigObject, linkerdKubeconfig, type Parts } from "../lab/kubeconfig.ts";
import { test } from "./level.ts";

const authority = {
  ca: "THE CA",
  server: { cert: "", key: "" },
  client: { cert: "CERT", key: "KEY" },
};
const stub = { url: "https://10.96.0.1:443", authority, token: "marker-token.0123" };

/** What a good one gives; `FILE` and `DIR` stand for where it is. */
const access = {
  server: "https://10.96.0.1:443",
  serverName: undefined,
  ca: "THE CA",
  token: "marker-token.0123",
  clientCertificate: undefined,
  tokenFile: "FILE",
};
const certificate = { cert: "CERT", key: "KEY" };
const byData = {
  "client-certificate-data": base64("CERT"),
  "client-key-data": base64("KEY"),
};
const server = (text: string): Parts => ({ cluster: { server: text } });
const twoContexts = [
  { name: "other", context: { cluster: "nowhere", user: "nobody" } },
  { name: "linkerd-cni-context", context: { cluster: "c", user: "u" } },
];

const forms: [what: string, parts: Parts, change: Partial<typeof access> | object][] = [
  ["a token", {}, {}],
  ["a token with blanks around it", { user: { token: " marker-token.0123\n" } }, {}],
  [
    "a token file",
    { user: { tokenFile: "token" } },
    { token: "of-the-file", tokenFile: "DIR/token" },
  ],
  [
    "a token, and a file that is renewed",
    { user: { token: "old", tokenFile: "./token" } },
    { token: "of-the-file", tokenFile: "DIR/token" },
  ],
  ["no credentials", { user: {} }, { token: undefined }],
  ["a client certificate", { user: byData }, { token: undefined, clientCertificate: certificate }],
  [
    "a client certificate in files",
    { user: { "client-certificate": "cert", "client-key": "key" } },
    { token: undefined, clientCertificate: certificate },
  ],
  [
    "the CA in a file",
    { cluster: { "certificate-authority-data": undefined, "certificate-authority": "ca" } },
    { ca: "CA OF THE FILE" },
  ],
  ["the CA twice: the data", { cluster: { "certificate-authority": "ca" } }, {}],
  ["no CA: the public ones", { cluster: { "certificate-authority-data": "" } }, { ca: undefined }],
  ["a server name", { cluster: { "tls-server-name": "k.svc" } }, { serverName: "k.svc" }],
  ["an empty server name", { cluster: { "tls-server-name": "" } }, {}],
  ["an IPv6 host", server("https://[fd00::1]:443"), { server: "https://[fd00::1]:443" }],
  [
    "a path",
    server("https://rancher/k8s/clusters/c-1/"),
    { server: "https://rancher/k8s/clusters/c-1" },
  ],
  ["brackets around IPv4", server("https://[10.96.0.1]:443"), {}],
  [
    "linkerd's context, and no current one",
    { more: { contexts: twoContexts, "current-context": "" } },
    {},
  ],
  [
    "what kubectl writes for what is not set",
    {
      cluster: { "proxy-url": "", "insecure-skip-tls-verify": false },
      user: { token: "marker-token.0123", username: "", "as-groups": null, exec: null },
    },
    {},
  ],
  ["keys that nobody reads", { cluster: { extensions: [] }, more: { preferences: {} } }, {}],
];

describe.for(forms)("%s", ([, parts, change]) => {
  test.for([
    ["YAML", (object: object) => toYaml(object)],
    ["JSON", (object: object) => JSON.stringify(object)],
    ["JSON with tabs", (object: object) => JSON.stringify(object, null, "\t")],
  ] as const)("loadKubeconfig() takes it as %s", ([, render], { files }) => {
    files.write("token", "of-the-file\n");
    files.write("ca", "CA OF THE FILE");
    files.write("cert", "CERT");
    files.write("key", "KEY");
    const file = files.write("kubeconfig", render(kubeconfigObject(stub, parts)));
    const found = loadKubeconfig(file);
    const tokenFile = found.tokenFile.replace(file, "FILE").replace(files.dir, "DIR");
    expect({ ...found, tokenFile }).toEqual({ ...access, ...change });
  });
});

test("loadKubeconfig() takes what linkerd's installer writes", ({ files }) => {
  const file = files.write("kubeconfig", linkerdKubeconfig(stub));
  expect(loadKubeconfig(file)).toEqual({ ...access, tokenFile: file });
});

const good = kubeconfigObject(stub);
const hint = "it must be https://host:port, with [brackets] around an IPv6 address";
const unreadable = "cannot be read: ENOENT: no such file or directory, open 'DIR/gone'";
const noPlugins = "exec and auth-provider are not run; give a token instead";
const noPair = "client-certificate and client-key are only of use together";
const noToken = "the token of FILE is empty, or none";
const faults: [what: string, content: string | object, problem: string][] = [
  ["empty", "", "it is not a kubeconfig"],
  ["of one word", "marker-token.0123", "it is not a kubeconfig"],
  ["binary", "\u0000\u0001\u0002", "it is neither YAML nor JSON (line 1)"],
  ["cut short as JSON", JSON.stringify(good).slice(0, -40), "it is neither YAML nor JSON (line 1)"],
  [
    "broken as YAML",
    "users:\n- name: u\n  user: {token: marker-token.0123\n clusters: [\n",
    "it is neither YAML nor JSON (line 4)",
  ],
  ["of an alias to nothing", "a: *marker-token", "it is neither YAML nor JSON (line 1)"],
  ["without users", { ...good, users: undefined }, "users: expected array"],
  [
    "with a number for a token",
    kubeconfigObject(stub, { user: { token: 7 } }),
    "users.0.user.token: expected string",
  ],
  [
    "without a server",
    kubeconfigObject(stub, { cluster: { server: undefined } }),
    "clusters.0.cluster.server: expected string",
  ],
  ["without a context", { ...good, contexts: [] }, "it has no context here"],
  [
    "without any context named",
    { ...good, "current-context": undefined },
    "it has no context linkerd-cni-context",
  ],
  ["without the cluster", { ...good, clusters: [] }, "it has no cluster c"],
  ["without the user", { ...good, users: [] }, "it has no user u"],
  [
    "for no TLS",
    kubeconfigObject(stub, server("http://10.96.0.1:80")),
    `server "http://10.96.0.1:80": ${hint}`,
  ],
  [
    "for an IPv6 host without brackets",
    kubeconfigObject(stub, server("https://fd00:10:96::1:443")),
    `server "https://fd00:10:96::1:443": ${hint}`,
  ],
  [
    "for a bare host",
    kubeconfigObject(stub, server("10.96.0.1:443")),
    `server "10.96.0.1:443": ${hint}`,
  ],
  [
    "for TLS that is not verified",
    kubeconfigObject(stub, { cluster: { "insecure-skip-tls-verify": true } }),
    "insecure-skip-tls-verify is not honoured; give the CA instead",
  ],
  ...["proxy-url"].map((key): (typeof faults)[number] => [
    `with ${key}`,
    kubeconfigObject(stub, { cluster: { [key]: "http://user:marker-token@proxy:3128" } }),
    "proxy-url is not honoured; the API server must be reached without it",
  ]),
  ...["username", "password", "as", "as-uid"].map((key): (typeof faults)[number] => [
    `with ${key}`,
    kubeconfigObject(stub, { user: { token: "t", [key]: "marker-token" } }),
    `${key} is not honoured; give a token of that user instead`,
  ]),
  [
    "with groups to be of",
    kubeconfigObject(stub, { user: { token: "t", "as-groups": ["system:masters"] } }),
    "as-groups is not honoured; give a token of that user instead",
  ],
  [
    "with more to say of the user",
    kubeconfigObject(stub, { user: { token: "t", "as-user-extra": { a: ["b"] } } }),
    "as-user-extra is not honoured; give a token of that user instead",
  ],
  ...[
    "https://user:marker-token@10.96.0.1:443",
    "https://marker-token@10.96.0.1:443",
    "http://user:marker-token@10.96.0.1",
    "user:marker-token@10.96.0.1:443",
    "https://10.96.0.1:443/@marker-token",
  ].map((url): (typeof faults)[number] => [
    `for ${url}`,
    kubeconfigObject(stub, server(url)),
    "server: a user or password in it is not honoured; give a token instead",
  ]),
  ...["https://10.96.0.1:443/?token=marker-token", "https://10.96.0.1#marker-token"].map(
    (url): (typeof faults)[number] => [
      `for ${url}`,
      kubeconfigObject(stub, server(url)),
      "server: it must have no query and no fragment",
    ],
  ),
  ...["https://user:marker-token", "marker-token%4010.96.0.1:443"].map(
    (url): (typeof faults)[number] => [
      `for ${url}`,
      kubeconfigObject(stub, server(url)),
      `server: ${hint}`,
    ],
  ),
  [
    "with a token that is too long",
    kubeconfigObject(stub, { user: { token: "x".repeat(65_537) } }),
    noToken,
  ],
  ["that is too large", " ".repeat(1_048_577), "cannot be read: FILE is larger than 1048576 bytes"],
  [
    "with a context that goes on and on",
    { ...good, "current-context": "y".repeat(5_000) },
    `it has no context ${"y".repeat(100)}`,
  ],
  ["nested too deep", "[".repeat(100_000), "it is neither YAML nor JSON (line 1)"],
  [
    "that merges what it has",
    `clusters: &a [{name: c}]\nusers: []\ncontexts: []\n${"x: &b {}\n"}y: {<<: *b}\n`,
    "clusters.0.cluster: expected object",
  ],
  [
    "with a program to run",
    kubeconfigObject(stub, { user: { exec: { command: "aws" } } }),
    noPlugins,
  ],
  [
    "with a provider",
    kubeconfigObject(stub, { user: { "auth-provider": { name: "gcp" } } }),
    noPlugins,
  ],
  [
    "with a key that has no certificate",
    kubeconfigObject(stub, { user: { "client-key-data": base64("KEY") } }),
    noPair,
  ],
  [
    "with a token of two lines",
    kubeconfigObject(stub, { user: { token: "marker\ntoken" } }),
    noToken,
  ],
  ["with a token of no letters", kubeconfigObject(stub, { user: { token: "märker" } }), noToken],
  ["with a blank token", kubeconfigObject(stub, { user: { token: "  " } }), noToken],
  [
    "with a token file that is gone",
    kubeconfigObject(stub, { user: { tokenFile: "gone" } }),
    unreadable,
  ],
  [
    "with an empty token file",
    kubeconfigObject(stub, { user: { tokenFile: "empty" } }),
    "the token of DIR/empty is empty, or none",
  ],
  [
    "with a CA file that is gone",
    kubeconfigObject(stub, {
      cluster: { "certificate-authority-data": undefined, "certificate-authority": "gone" },
    }),
    unreadable,
  ],
];

test.for(faults)("loadKubeconfig() refuses one %s", ([, content, problem], { files }) => {
  files.write("empty", "");
  const file = files.write("kubeconfig", content);
  const error = String(thrownBy(() => loadKubeconfig(file)));
  expect(error.replaceAll(file, "FILE").replaceAll(files.dir, "DIR")).toBe(
    `KubeconfigError: kubeconfig FILE: ${problem}`,
  );
});

test("loadKubeconfig() refuses one that is not there", ({ files }) => {
  const error = thrownBy(() => loadKubeconfig(`${files.dir}/gone`));
  expect(String(error).replaceAll(files.dir, "DIR")).toBe(
    `KubeconfigError: kubeconfig DIR/gone: ${unreadable}`,
  );
});

test("loadKubeconfig() refuses a directory", ({ files }) => {
  expect(String(thrownBy(() => loadKubeconfig(files.dir)))).toBe(
    `KubeconfigError: kubeconfig ${files.dir}: cannot be read: EISDIR: illegal operation on a directory, read`,
  );
});

test("fileAgeSeconds() tells a new file from one that is gone", ({ files }) => {
  expect([fileAgeSeconds(files.write("new", "")), fileAgeSeconds(`${files.dir}/gone`)]).toEqual([
    0,
    undefined,
  ]);
});

const odd: [what: string, path: string, problem: string][] = [
  ["a device", "/dev/zero", "cannot be read: /dev/zero is no regular file"],
  ["a pipe that nobody writes to", "DIR/pipe", "cannot be read: DIR/pipe is no regular file"],
];

test.for(odd)("loadKubeconfig() refuses %s, at once", ([, path, problem], { files }) => {
  execaSync("mkfifo", [`${files.dir}/pipe`]);
  const file = path.replace("DIR", files.dir);
  const told = `KubeconfigError: kubeconfig ${path}: ${problem}`;
  expect(String(thrownBy(() => loadKubeconfig(file))).replaceAll(files.dir, "DIR")).toBe(told);
  const named = files.write("kubeconfig", kubeconfigObject(stub, { user: { tokenFile: file } }));
  expect(String(thrownBy(() => loadKubeconfig(named))).replaceAll(files.dir, "DIR")).toBe(
    `KubeconfigError: kubeconfig DIR/kubeconfig: ${problem}`,
  );
});

test("loadKubeconfig() is soon done with aliases, anchors and merges in great number", ({
  files,
}) => {
  const keys = Array.from({ length: 9_000 }, (_, i) => `k${i}: 1`).join(", ");
  const uses = Array.from({ length: 9_000 }, (_, i) => `  - {<<: *a, n: ${i}}`).join("\n");
  const file = files.write(
    "kubeconfig",
    `a: &a {${keys}}\nb:\n${uses}\nclusters: [${"*a, ".repeat(9_000)}*a]\n`,
  );
  expect(String(thrownBy(() => loadKubeconfig(file)))).toContain("expected");
});
