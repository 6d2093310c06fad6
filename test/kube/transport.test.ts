// One GET over TLS: whom it trusts, who it is, and where it goes.
import { execa } from "execa";
import { expect, onTestFinished } from "vitest";
import { loadKubeconfig } from "../../src/kube/kubeconfig.ts";
import { type Answer, ask, makeAgent } from "../../src/kube/transport.ts";
import { objectsFor, paths, podObject } from "../lab/api-objects.ts";
import { type ApiStub, type Place, startApi } from "../lab/api-stub.ts";
import { makeAuthority, serverName } from "../lab/certificates.ts";
import { base64, kubeconfigObject, type Parts } from "../lab/kubeconfig.ts";
import { node, root } from "../lab/plugin.ts";
import { type Files, test } from "./level.ts";

const pod: Answer = { kind: "object", object: podObject() };

function untrusted(problem: string): Answer {
  return { kind: "untrusted", problem };
}

const strange = untrusted("self-signed certificate in certificate chain");
const notNamed = (name: string) =>
  untrusted(
    `Hostname/IP does not match certificate's altnames: Host: ${name}. is not in the cert's altnames: IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, DNS:${serverName}`,
  );
const notAt = untrusted(
  "Hostname/IP does not match certificate's altnames: IP: 10.0.0.9 is not in the cert's list: 127.0.0.1, ::1",
);
const noPem = untrusted("error:0480006C:PEM routines::no start line");

const ca = (text: string): Parts => ({ cluster: { "certificate-authority-data": base64(text) } });
const named = (name: string): Parts => ({ cluster: { "tls-server-name": name } });
const otherCa = makeAuthority();

const trusts: [what: string, parts: (api: ApiStub) => Parts, answer: Answer][] = [
  ["our CA", () => ({}), pod],
  ["another CA", () => ca(otherCa.ca), strange],
  ["the public CAs only", () => ca(""), strange],
  ["a CA that is none", () => ca("no certificate"), strange],
  ["two CAs", (api) => ca(otherCa.ca + api.authority.ca), pod],
  ["a name that the certificate has", () => named(serverName), pod],
  ["a name that it has not", () => named("other.svc"), notNamed("other.svc")],
  ["an address that the certificate has", () => named("127.0.0.1"), pod],
  ["an address that it has not", () => named("10.0.0.9"), notAt],
];

test.for(trusts)("ask() with %s in the kubeconfig", async ([, parts, answer], { api, files }) => {
  expect(await askWith(api, files, parts(api))).toEqual(answer);
});

const pair = ({ cert, key }: ApiStub["authority"]["client"]) => ({
  "client-certificate-data": base64(cert),
  "client-key-data": base64(key),
});
const unauthorized: Answer = { kind: "unauthorized" };
const selves: [what: string, user: (api: ApiStub) => object, answer: Answer][] = [
  ["the token", (api) => ({ token: api.token }), pod],
  ["another token", () => ({ token: "other" }), unauthorized],
  ["nothing", () => ({}), unauthorized],
  ["a certificate", (api) => pair(api.authority.client), pod],
  ["a certificate of another CA", () => pair(otherCa.client), unauthorized],
  ["a certificate that is none", () => pair({ cert: "x", key: "y" }), noPem],
];

test.for(selves)("ask() says who we are by %s", async ([, user, answer], { api, files }) => {
  expect(await askWith(api, files, { user: user(api) })).toEqual(answer);
});

const places: [what: string, place: Place, request: string][] = [
  ["an IPv6 address", { host: "::1" }, `GET ${paths.pod}`],
  ["a path", { basePath: "/k8s/clusters/c-1" }, `GET /k8s/clusters/c-1${paths.pod}`],
];

test.for(places)("ask() finds a server at %s", async ([, place, request], { authority, files }) => {
  const api = await startApi({ ...place, authority });
  onTestFinished(api.close);
  api.objects = objectsFor();
  expect(await askWith(api, files, {})).toEqual(pod);
  expect(api.requests).toEqual([request]);
});

test("ask() waits no longer than it may, also for a server that says nothing at all", async ({
  api,
  files,
}) => {
  api.mode = "slow";
  const began = performance.now();
  const problem = "no whole answer in 301 ms";
  expect(await askWith(api, files, { timeoutMs: 300.4 })).toEqual({ kind: "passing", problem });
  expect(performance.now() - began).toBeLessThan(1_000);
});

test("ask() verifies the server also where the environment says that nobody shall", async ({
  api,
  files,
}) => {
  const file = files.write("kubeconfig", kubeconfigObject(api, ca(otherCa.ca)));
  const script = `
    const { loadKubeconfig } = await import("./src/kube/kubeconfig.ts");
    const { ask, makeAgent } = await import("./src/kube/transport.ts");
    const access = loadKubeconfig(${JSON.stringify(file)});
    const question = { access, agent: makeAgent(), path: "/", timeoutMs: 2000 };
    console.log(JSON.stringify(await ask(question)));`;
  const { stdout } = await execa(node, ["--input-type=module", "--eval", script], {
    cwd: root,
    env: { NODE_TLS_REJECT_UNAUTHORIZED: "0" },
  });
  expect(JSON.parse(stdout)).toEqual(strange);
  expect(api.requests).toEqual([]);
});

type Wish = Parts & { readonly timeoutMs?: number };

function askWith(api: ApiStub, files: Files, wish: Wish): Promise<Answer> {
  const { timeoutMs = 2_000, ...parts } = wish;
  const access = loadKubeconfig(files.write("kubeconfig", kubeconfigObject(api, parts)));
  return ask({ access, agent: makeAgent(), path: paths.pod, timeoutMs });
}
