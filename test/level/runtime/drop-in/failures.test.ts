// The API fails, in every way: ADD fails in time with an error that says what to do, and nothing is written; DEL does not
// care. Never success without rules.
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { expect } from "vitest";
import { objectsFor, paths } from "../../../lab/api-objects.ts";
import type { ApiStub, Mode } from "../../../lab/api-stub.ts";
import { kubeconfigObject } from "../../../lab/kubeconfig.ts";
import { type Attachment, confFor, linesOf, lookInto, test } from "./level.ts";

/** How long the call may take. Three of these are the rules': what remains is for the API. */
const seconds = { final: 20, passing: 5, silent: 4 } as const;

const unreachable = `the API server did not answer: GET API${paths.pod}: `;
const noFacts = `the API server gave no pod facts: GET API${paths.pod}: HTTP `;
const mistaken = `the answer to GET ${paths.pod} is not the object asked for`;
const doesNotStart =
  "a pod that may be meshed does not start without its redirect; see that the API server can be reached from the node";
const noApi = "see that the kubeconfig's server is a Kubernetes API server";
const renew = "the token is of DIR/kubeconfig, N s old; see that the node agent renews it";
const grant = "give the plugin's user the right to get pods, namespaces and services";
const gone =
  "the pod is not, or no longer, known to the API server; it may be no pod of Kubernetes";

type Told = [code: number, msg: string, details: string];

/** An answer that stays as it is, one that may pass (asked for again while there is time), or none. */
type Kind = keyof typeof seconds;

const modes: [mode: Mode, kind: Kind, told: Told][] = [
  ["401", "final", [11, `the API server rejected our token: GET API${paths.pod}`, renew]],
  [
    "403",
    "final",
    [
      103,
      `${noFacts}403 pods "web" is forbidden: User "system:serviceaccount:sluice:sluice" cannot get resource "pods" in API group "" in the namespace "emoji"`,
      grant,
    ],
  ],
  ["404", "final", [103, `${noFacts}404 pods "web" not found`, gone]],
  ["302", "final", [103, `${noFacts}302`, noApi]],
  [
    "429",
    "passing",
    [
      11,
      `${unreachable}HTTP 429 the server has received too many requests, please try again later`,
      doesNotStart,
    ],
  ],
  ["500", "passing", [11, `${unreachable}HTTP 500 etcdserver: request timed out`, doesNotStart]],
  ["503", "passing", [11, `${unreachable}HTTP 503 apiserver not ready`, doesNotStart]],
  ["hang", "silent", [11, `${unreachable}no whole answer in N ms`, doesNotStart]],
  ["slow", "silent", [11, `${unreachable}no whole answer in N ms`, doesNotStart]],
  ["cut", "passing", [11, `${unreachable}aborted`, doesNotStart]],
  ["garbage", "final", [103, `${noFacts}200 an answer that is not JSON`, noApi]],
  ["other", "final", [103, mistaken, noApi]],
  ["huge", "final", [103, `${noFacts}200 an answer of more than 4194304 bytes`, noApi]],
  ["echo", "final", [103, `${noFacts}400 no upstream for Bearer [redacted]`, noApi]],
];

test.for(modes)(
  "ADD fails in time and writes nothing when the server's mode is %s",
  async ([mode, kind, told], { api, pod }) => {
    api.mode = mode;
    await expectFailure({ pod, api, kind }, told);
  },
);

test("ADD fails in time when the second question is not answered", async ({ api, pod }) => {
  api.next.push("ok");
  api.mode = "hang";
  const msg = `${unreachable.replace(paths.pod, paths.namespace)}no whole answer in N ms`;
  await expectFailure({ pod, api, kind: "passing" }, [11, msg, doesNotStart]);
  expect(api.requests).toEqual([`GET ${paths.pod}`, `GET ${paths.namespace}`]);
});

test("ADD fails in time when nobody listens", async ({ api, pod }) => {
  await api.close();
  await expectFailure({ pod, api, kind: "silent" }, [
    11,
    `${unreachable}connect ECONNREFUSED API`,
    doesNotStart,
  ]);
});

test("ADD fails in time when the server takes the connection and says nothing", async ({
  api,
  pod,
  onTestFinished,
}) => {
  const mute = createServer(() => undefined);
  await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void mute.close());
  const address = mute.address();
  const url = `https://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  writeFileSync(pod.kubeconfig, JSON.stringify(kubeconfigObject({ ...api, url })));
  const told: Told = [11, `${unreachable}no whole answer in N ms`, doesNotStart];
  await expectFailure({ pod, api: { ...api, url }, kind: "silent" }, told);
});

test("ADD takes the usual ports when a control plane pod may not read services", async ({
  api,
  pod,
}) => {
  api.objects = objectsFor({ labels: { "linkerd.io/control-plane-component": "identity" } });
  api.next.push("ok", "ok");
  api.mode = "403";
  const conf = confFor(pod);
  const answer = await pod.call("ADD", conf);
  expect([answer.exitCode, answer.stdout]).toEqual([0, JSON.stringify(conf.prevResult)]);
  expect(linesOf(answer).map(({ msg }) => msg)).toEqual([
    "the API server's ports are taken from the conf",
    "done",
  ]);
  expect(lookInto(pod).rules.ipv4).toContain(
    "-A PROXY_INIT_OUTPUT -p tcp -m multiport --dports 443,6443 -j RETURN",
  );
});

const kubeconfigs: [what: string, content: string, msg: string][] = [
  ["empty", "", "it is not a kubeconfig"],
  ["no YAML", "users: [\n- token: marker-token", "it is neither YAML nor JSON (line 2)"],
  ["one without users", "clusters: []\ncontexts: []\n", "users: expected array"],
  ["binary", "\u0000\u0001", "it is neither YAML nor JSON (line 1)"],
];

test.for(kubeconfigs)(
  "ADD fails and writes nothing when the kubeconfig is %s",
  async ([, content, problem], { api, pod }) => {
    writeFileSync(pod.kubeconfig, content);
    const details =
      "the pod cannot be read without it; see that the node agent runs and has written it";
    await expectFailure({ pod, api, kind: "silent" }, [
      11,
      `kubeconfig DIR/kubeconfig: ${problem}`,
      details,
    ]);
    expect(api.requests).toEqual([]);
  },
);

type Setting = { readonly pod: Attachment; readonly api: ApiStub; readonly kind: Kind };

async function expectFailure({ pod, api, kind }: Setting, told: Told): Promise<void> {
  const [code, msg, details] = told;
  const conf = confFor(pod, { sluice: { "timeout-seconds": seconds[kind] } });

  const added = await pod.call("ADD", conf);

  expect([added.exitCode, JSON.parse(plain(added.stdout, pod, api))]).toEqual([
    1,
    { cniVersion: "1.1.0", code, msg, details },
  ]);
  expect(linesOf(added).map(({ level, code }) => ({ level, code }))).toEqual([
    { level: "error", code },
  ]);
  expect(added.durationMs).toBeLessThan(seconds[kind] * 1_000);
  expect([lookInto(pod).untouched, pod.records()]).toEqual([true, []]);

  const asked = api.requests.length;
  expect(await pod.call("DEL", conf)).toMatchObject({ exitCode: 0, stdout: "" });
  expect(api.requests.length).toBe(asked);
}

/** An answer without what differs from run to run. */
function plain(stdout: string, { dir }: Attachment, { url }: ApiStub): string {
  return stdout
    .replaceAll(url, "API")
    .replaceAll(url.slice("https://".length), "API")
    .replaceAll(dir, "DIR")
    .replaceAll(/\b\d+(?= ms\b| s old)/g, "N");
}
