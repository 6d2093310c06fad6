// The token that lets the plugin ask the API is in none of its outputs: stdout, stderr and the log file, at debug level,
// whatever goes wrong (GHSA-9p7w-w5q6-mxj3 was another plugin's).
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { ApiStub, Mode } from "../../../lab/api-stub.ts";
import { kubeconfigObject, linkerdKubeconfig } from "../../../lab/kubeconfig.ts";
import { type Attachment, confFor, linesOf, test } from "./level.ts";

/** Two kinds: a service account's, and one that looks like nothing special. */
const tokens = {
  jwt: "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzbHVpY2UifQ.c2xjLXNpZ25hdHVyZQ",
  opaque: "slc-marker-7f3a.0123456789abcdef",
};

type SetUp = (api: ApiStub, pod: Attachment, token: string) => void;

const inMode =
  (mode: Mode): SetUp =>
  (api) => {
    api.mode = mode;
  };
const kubeconfig =
  (content: (token: string, api: ApiStub) => string): SetUp =>
  (api, pod, token) =>
    writeFileSync(pod.kubeconfig, content(token, api));

const situations: [what: string, setUp: SetUp][] = [
  ["all is well", inMode("ok")],
  ["the token is rejected", inMode("401")],
  ["the server repeats it", inMode("echo")],
  ["the server refuses", inMode("403")],
  ["the answer is another object", inMode("other")],
  [
    "the server is another",
    kubeconfig((token, { url, authority }) =>
      JSON.stringify(kubeconfigObject({ url, authority: { ...authority, ca: "" }, token })),
    ),
  ],
  [
    "the kubeconfig is no YAML",
    kubeconfig((token) => `users:\n- name: u\n  user: {token: ${token}\n x: [\n`),
  ],
  ["the kubeconfig is nothing but a token", kubeconfig((token) => token)],
  ["the kubeconfig has an odd tag", kubeconfig((token) => `users: !odd ${token}\n`)],
  ["the kubeconfig's alias is a token", kubeconfig((token) => `users: *${token}\n`)],
  [
    "the token is of two lines",
    kubeconfig((token, api) =>
      JSON.stringify(kubeconfigObject(api, { user: { token: `${token}\nx` } })),
    ),
  ],
  [
    "the token is a list",
    kubeconfig((token, api) => JSON.stringify(kubeconfigObject(api, { user: { token: [token] } }))),
  ],
];

const cases = situations.flatMap(([what, setUp]) =>
  Object.entries(tokens).map(([kind, token]) => ({ what, kind, setUp, token })),
);

test.concurrent.for(cases)(
  "no output has the $kind token when $what",
  async ({ setUp, token }, { api, pod }) => {
    api.token = token;
    writeFileSync(pod.kubeconfig, linkerdKubeconfig(api));
    setUp(api, pod, token);
    const log = join(pod.dir, "log");
    const top = {
      log_level: "debug",
      log_file: log,
      // As old templates of linkerd-cni had it.
      policy: { type: "k8s", k8s_auth_token: token },
    };
    const conf = confFor(pod, { top, sluice: { "timeout-seconds": 4 } });

    const answer = await pod.call("ADD", conf);

    const said = [answer.stdout, answer.stderr, readFileSync(log, "utf8")].join("\n");
    const parts = token.split(".").filter((part) => said.includes(part));
    expect(parts).toEqual([]);
    // There is something to read, and each line of it is JSON.
    expect(linesOf(answer).length).toBeGreaterThan(0);
  },
);
